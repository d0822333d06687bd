#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "pmsim/workloads/oltp/session.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

/// Transactions of an OLTP benchmark on a storage engine (van Renen et al. 2018, section 5): loaded and warmed
/// up without time, warmed up with it for the caches of the CPU, then measured in batches. Virtual threads take
/// turns between transactions. Several go on beyond the measured number until so many have ended in virtual
/// time, where the machine stops: a thread without work, while others are under way, would be measured as idle.
class Oltp final : public Workload {
 public:
  Oltp(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : operations_(parameters.number("operations", 1, std::int64_t{1} << 40)),
        batches_(static_cast<std::uint32_t>(parameters.number("batches", 1, 1 << 20))),
        warmup_limit_(static_cast<std::uint64_t>(parameters.number("warmup", 0, std::int64_t{1} << 40))),
        check_(parameters.number("check", 0, 1) != 0),
        session_(parameters, platform, seed, check_),
        shares_lines_(session_.shares_lines()),
        dram_cache_lines_(platform.controller.memory_mode != 0 ? platform.dram.capacity / memory::kLineBytes
                                                               : 0) {
    if (parameters.number("breakdown", 0, 1) != 0)
      session_.memory().mark_sections();
    // Small ones need as many transactions as fill the shared cache; no benchmark needs more than this.
    // Not longer than what is measured: a transaction may scan the whole table.
    timed_warmup_ =
        std::clamp<std::int64_t>(operations_ / 10, std::min<std::int64_t>(operations_, 100), 50'000);
    session_.require(warmup_limit_, static_cast<std::uint64_t>(timed_warmup_),
                     static_cast<std::uint64_t>(operations_));
  }

  void prepare(const Watch& watch) override {
    session_.load(watch);
    warm_up_ = session_.warm_up(warmup_limit_, watch);
    timed_warmup_ = std::max(timed_warmup_, transactions_to_fill_dram_cache());
  }

  [[nodiscard]] std::uint32_t threads() const override { return session_.threads(); }
  [[nodiscard]] machine::RunLength usual_length() const override { return {timed_warmup_, operations_}; }
  [[nodiscard]] std::uint32_t batches() const override { return batches_; }
  [[nodiscard]] bool shares_lines() const noexcept override { return shares_lines_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return session_.pmem_bytes(); }

  [[nodiscard]] std::map<std::string, double> facts() const override { return facts_; }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    const std::int64_t last = timed_warmup_ + operations_;
    // One thread cannot be overtaken: several transactions at once save a machine's trouble with batches.
    const std::int64_t until = threads() == 1 ? std::min(executed_ + kBatch, last) : executed_ + 1;
    if (executed_ >= until || !session_.has_next())
      return;
    session_.memory().attach(stream, thread);
    while (executed_ < until && stream.size() < kManyOps) {
      if (executed_ == timed_warmup_)
        begin_measurement();
      stream.push(memory::OpKind::kOperationBegin, 0, 0);
      const oltp::Outcome outcome = session_.transaction(thread);
      stream.push(memory::OpKind::kOperationEnd, 0, outcome.user_bytes);
      rolled_back_ += outcome.committed ? 0 : 1;
      ++executed_;
    }
    session_.memory().detach();
    if (executed_ == last)
      end_measurement();
  }

  void end() override {
    if (!check_)
      return;
    if (const std::string broken = session_.check(); !broken.empty())
      throw SimulationError("pmsim bug: after the run, " + broken);
  }

 private:
  /// In memory mode DRAM begins with any lines that are in use, and not with those that are used most. After so
  /// many transactions each of its lines has been replaced or asked for, in the mean, and hit ratios no longer
  /// rise. Only a machine with its time knows what DRAM holds, so this part of the warm-up has to be simulated.
  [[nodiscard]] std::int64_t transactions_to_fill_dram_cache() const {
    if (warm_up_.transactions == 0 || session_.is_recorded())
      return 0;
    const std::uint64_t lines = warm_up_.user_bytes / warm_up_.transactions / memory::kLineBytes;
    return dram_cache_lines_ / std::max<std::int64_t>(1, static_cast<std::int64_t>(lines));
  }

  static constexpr std::int64_t kBatch = 8;
  static constexpr std::size_t kManyOps = 1 << 16;  ///< of a stream: a scan of the whole table needs gigabytes

  void begin_measurement() {
    before_ = session_.engine().counters();
    rolled_back_ = 0;
    if (session_.counts_wear())
      session_.memory().reset_wear();
  }
  void end_measurement() {
    for (const auto& [name, value] : session_.engine().counters()) {
      const auto before = before_.find(name);
      facts_["engine." + name] = value - (before == before_.end() ? 0 : before->second);
      if (name == "log_truncations")
        facts_["log_reused"] = value > 0 ? 1 : 0;
    }
    facts_["rows"] = static_cast<double>(session_.rows());
    facts_["rolled_back"] = static_cast<double>(rolled_back_);
    facts_["warmup_transactions"] = static_cast<double>(warm_up_.transactions);
    facts_["steady"] = warm_up_.steady ? 1 : 0;
    if (const memory::Address pages = session_.engine().place().pmem; session_.counts_wear() && pages != 0)
      oltp::add_wear_facts(session_.memory().line_writes(pages), facts_);
  }

  std::int64_t operations_;
  std::uint32_t batches_;
  std::uint64_t warmup_limit_;
  bool check_;
  oltp::Session session_;
  bool shares_lines_;
  std::int64_t dram_cache_lines_;  ///< 0: not in memory mode
  oltp::Session::WarmUp warm_up_;
  std::int64_t timed_warmup_ = 0;
  std::int64_t executed_ = 0;
  std::int64_t rolled_back_ = 0;
  oltp::Session::Counters before_;
  std::map<std::string, double> facts_;
};

}  // namespace

std::unique_ptr<Workload> make_oltp(Parameters& parameters, const machine::PlatformParams& platform,
                                    std::uint64_t seed) {
  return std::make_unique<Oltp>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
