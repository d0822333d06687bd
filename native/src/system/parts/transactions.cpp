#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine_parameters.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/workloads/oltp/choice.hpp"
#include "pmsim/workloads/oltp/options.hpp"

namespace pmsim::system {

namespace {

using engines::EngineOptions;
using memory::SimMemory;
using workloads::oltp::Transactions;
using workloads::oltp::WorkloadOptions;

[[nodiscard]] WorkloadOptions workload_options(workloads::Parameters& parameters, const EngineOptions& engine,
                                               std::uint64_t seed) {
  WorkloadOptions options;
  options.workload =
      parameters.choice("workload", {"ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f", "tpcc"});
  options.rows = static_cast<std::uint64_t>(parameters.number("rows", 1, kMaxEngineBytes));
  options.warehouses =
      static_cast<std::uint32_t>(parameters.number("warehouses", 1, workloads::oltp::tpcc::kMaxWarehouses));
  // Several workers lock the rows that they change, but where nobody waits for anybody.
  options.locks.copies = engines::Latches::are_needed(engine) ? 1 : 0;
  options.zipf = workloads::oltp::real_number(parameters, "zipf", 0, 100);
  options.engine = engine;
  options.fill = kLeafFill;
  options.seed = seed;
  return options;
}

/// A storage engine under a benchmark (oltp/choice.hpp). Each request is the next transaction of its worker,
/// whose rows the benchmark draws:
///
///  - next: one transaction. Result: bytes read or written for its user.
///  - checkpoint: everything committed goes to its home tier, the log is truncated.
///
/// What a benchmark remembers beside its tables, such as which keys there are, does not survive a power
/// failure.
class TransactionsPart final : public Part {
 public:
  TransactionsPart(workloads::Parameters& parameters, const PartContext& context)
      : shared_(context.workers > 1) {
    if (context.crash)
      throw ConfigError(
          "transactions: a benchmark keeps no ledger of what is durable; let the power fail under another "
          "part");
    const EngineOptions options = engine_options(parameters, context.workers, context.seed);
    transactions_ =
        workloads::oltp::make_transactions<SimMemory>(workload_options(parameters, options, context.seed));
    const std::uint64_t before = bytes_in_use(context.memory, memory::Medium::kPmem);
    engine_ = engines::engine_named<SimMemory>(options.engine).create(context.memory, options);
    transactions_->load(context.memory, *engine_, kLeafFill, Poll(context.watch, Phase::kLoad));
    shares_lines_ = options.shares_lines();
    for (std::uint32_t worker = 0; worker < context.workers; ++worker)
      random_.emplace_back(mix64(context.seed) + worker);
    pmem_bytes_ = bytes_in_use(context.memory, memory::Medium::kPmem) - before;
  }

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {"next", "checkpoint"}; }

  std::uint64_t execute(SimMemory& memory, std::uint32_t worker, const Request& request) override {
    engine_->work_as(worker);
    if (request.kind != 0) {
      engine_->checkpoint(memory);
      return 0;
    }
    const workloads::oltp::Outcome outcome = transactions_->transaction(memory, *engine_, random_[worker]);
    rolled_back_ += outcome.committed ? 0 : 1;
    return outcome.user_bytes;
  }

  void recover(SimMemory&) override { throw SimulationError("pmsim bug: a benchmark cannot be crashed"); }

  [[nodiscard]] std::uint64_t pmem_bytes() const override { return pmem_bytes_; }
  [[nodiscard]] std::map<std::string, double> facts() const override {
    std::map<std::string, double> facts = engine_->counters();
    facts["rolled_back"] = static_cast<double>(rolled_back_);
    return facts;
  }
  [[nodiscard]] bool shared() const override { return shared_; }
  [[nodiscard]] bool shares_lines() const override { return shares_lines_; }

 private:
  bool shared_;
  bool shares_lines_ = false;
  std::unique_ptr<Transactions<SimMemory>> transactions_;
  std::unique_ptr<engines::Engine<SimMemory>> engine_;
  std::vector<Random> random_;
  std::uint64_t rolled_back_ = 0;
  std::uint64_t pmem_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Part> make_transactions_part(workloads::Parameters& parameters, const PartContext& context) {
  return std::make_unique<TransactionsPart>(parameters, context);
}

}  // namespace pmsim::system
