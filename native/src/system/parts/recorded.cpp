#include <memory>
#include <string>
#include <vector>

#include "engine_parameters.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/workloads/oltp/requests.hpp"

namespace pmsim::system {

namespace {

using memory::SimMemory;
using workloads::oltp::Requests;

/// A storage engine that serves recorded requests (oltp/requests.hpp): `first` is a request's number in the
/// recording. What each finds is compared with what those before it have left, so requests are executed in the
/// order in which workers begin them, each at once. That knowledge does not survive a power failure.
class RecordedPart final : public Part {
 public:
  RecordedPart(workloads::Parameters& parameters, const PartContext& context)
      : random_(mix64(context.seed)), shared_(context.workers > 1) {
    if (context.crash)
      throw ConfigError(
          "recorded: recorded requests keep no ledger of what is durable; let the power fail under another "
          "part");
    const engines::EngineOptions options = engine_options(parameters, context.workers, context.seed);
    workloads::oltp::RequestsOptions recorded;
    recorded.requests = workloads::oltp::unpack_requests(parameters.text("requests"));
    recorded.rows = static_cast<std::uint64_t>(parameters.number("rows", 1, kMaxEngineBytes));
    recorded.row_bytes = static_cast<std::uint32_t>(parameters.number("row_size", 8, 4096));
    recorded.seed = context.seed;
    requests_ = std::make_unique<Requests<SimMemory>>(std::move(recorded));
    const std::uint64_t before = bytes_in_use(context.memory, memory::Medium::kPmem);
    engine_ = engines::engine_named<SimMemory>(options.engine).create(context.memory, options);
    requests_->load(context.memory, *engine_, kLeafFill, Poll(context.watch, Phase::kLoad));
    shares_lines_ = options.shares_lines();
    pmem_bytes_ = bytes_in_use(context.memory, memory::Medium::kPmem) - before;
  }

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {"request"}; }

  /// Result: bytes read or written.
  std::uint64_t execute(SimMemory& memory, std::uint32_t worker, const Request& request) override {
    if (request.first >= requests_->length()) {
      throw ConfigError("recorded.request: there is no request " + std::to_string(request.first) +
                        "; there are " + std::to_string(requests_->length()) + ", from 0 on");
    }
    engine_->work_as(worker);
    return requests_->serve(memory, *engine_, request.first, random_).user_bytes;
  }

  void recover(SimMemory&) override { throw SimulationError("pmsim bug: recorded requests cannot be crashed"); }

  [[nodiscard]] std::uint64_t pmem_bytes() const override { return pmem_bytes_; }
  [[nodiscard]] std::map<std::string, double> facts() const override { return engine_->counters(); }
  [[nodiscard]] bool shared() const override { return shared_; }
  [[nodiscard]] bool shares_lines() const override { return shares_lines_; }

 private:
  Random random_;
  bool shared_;
  bool shares_lines_ = false;
  std::unique_ptr<Requests<SimMemory>> requests_;
  std::unique_ptr<engines::Engine<SimMemory>> engine_;
  std::uint64_t pmem_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Part> make_recorded(workloads::Parameters& parameters, const PartContext& context) {
  return std::make_unique<RecordedPart>(parameters, context);
}

}  // namespace pmsim::system
