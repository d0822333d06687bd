#include <memory>

#include "pmsim/workloads/oltp/session.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

/// Transactions right after a restart (van Renen et al. 2018, section A.5): the engine has been warmed up, then
/// ended cleanly or by a power failure, all without time. The first operation is its recovery, the others are
/// transactions; caches, TLBs and DRAM are cold. Batches give the throughput over time.
class Restart final : public Workload {
 public:
  Restart(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : operations_(parameters.number("operations", 1, std::int64_t{1} << 40)),
        batches_(static_cast<std::uint32_t>(parameters.number("batches", 1, 1 << 20))),
        warmup_limit_(static_cast<std::uint64_t>(parameters.number("warmup", 0, std::int64_t{1} << 40))),
        clean_(parameters.choice("end", {"clean", "crash"}) == "clean"),
        session_(parameters, platform, seed) {
    if (session_.threads() != 1)
      parameters.refuse("threads", "a restart is timed with one thread");
    session_.require_restart();
    session_.require(warmup_limit_, 0, static_cast<std::uint64_t>(operations_));
  }

  void prepare(const Watch& watch) override {
    session_.load(watch);
    warm_up_ = session_.warm_up(warmup_limit_, watch);
    session_.stop(clean_, watch);
  }

  [[nodiscard]] std::uint32_t threads() const override { return 1; }
  /// The warm-up is the recovery.
  [[nodiscard]] machine::RunLength usual_length() const override { return {1, operations_}; }
  [[nodiscard]] std::uint32_t batches() const override { return batches_; }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return session_.pmem_bytes(); }

  [[nodiscard]] std::map<std::string, double> facts() const override {
    std::map<std::string, double> facts;
    for (const auto& [name, value] : session_.engine().counters())
      facts["engine." + name] = value;
    facts["rows"] = static_cast<double>(session_.rows());
    facts["warmup_transactions"] = static_cast<double>(warm_up_.transactions);
    facts["steady"] = warm_up_.steady ? 1 : 0;
    return facts;
  }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (executed_ > operations_)
      return;
    session_.memory().attach(stream, thread);
    std::uint32_t user_bytes = 0;
    if (executed_ == 0) {
      // Nothing says that an operation begins: its time is not the latency of one.
      session_.restart();
      // Whoever opens the database waits for its recovery.
      session_.memory().mfence();
    } else {
      stream.push(memory::OpKind::kOperationBegin, 0, 0);
      user_bytes = session_.transaction(thread).user_bytes;
    }
    stream.push(memory::OpKind::kOperationEnd, 0, user_bytes);
    ++executed_;
    session_.memory().detach();
  }

 private:
  std::int64_t operations_;
  std::uint32_t batches_;
  std::uint64_t warmup_limit_;
  bool clean_;
  oltp::Session session_;
  oltp::Session::WarmUp warm_up_;
  std::int64_t executed_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_restart(Parameters& parameters, const machine::PlatformParams& platform,
                                       std::uint64_t seed) {
  return std::make_unique<Restart>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
