#include <memory>

#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/host/region.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/workloads/oltp/options.hpp"
#include "pmsim/workloads/oltp/temporary_file.hpp"

namespace pmsim::host {

namespace {

using memory::HostMemory;

/// Beside the tiers: tables of pages, and what is rounded up. Address space only, until it is used.
constexpr std::uint64_t kExtra = std::uint64_t{1} << 28;
constexpr std::int64_t kMostWarmup = std::int64_t{1} << 40;

/// Transactions on a storage engine: the source that the workload `oltp` simulates, and its parameters as far
/// as they are about engine and benchmark, with `warmup` (transactions before the first repetition) and `seed`.
/// The SSD is a temporary file, through the page cache. Repetitions follow each other on warm caches.
class Oltp final : public Benchmark {
 public:
  Oltp(Parameters& parameters, const Place& place)
      : seed_(static_cast<std::uint64_t>(parameters.number("seed", 0, std::int64_t{1} << 62))),
        options_(workloads::oltp::read_engine_options(parameters, seed_)),
        memory_(host_options(place)),
        random_(mix64(seed_)) {
    if (options_.threads != 1)
      parameters.refuse("threads", "an engine runs natively with one thread");
    const std::int64_t warmup = parameters.number("warmup", 0, kMostWarmup);
    const workloads::oltp::WorkloadOptions workload =
        workloads::oltp::read_workload_options(parameters, options_, seed_);
    static_cast<void>(parameters.number("ssd_in_file", 0, 1));  // it is in one
    parameters.require_all_read();                              // loading takes long
    transactions_ = workloads::oltp::make_transactions<HostMemory>(workload);
    engine_ = engines::engine_named<HostMemory>(options_.engine).create(memory_, options_);
    transactions_->load(memory_, *engine_, workload.fill, Poll());
    touch_regions(memory_);
    run(0, static_cast<std::uint64_t>(warmup));
  }

  [[nodiscard]] bool is_dax() const override { return memory_.pmem_is_dax(); }

  void run(std::uint32_t /*thread*/, std::uint64_t operations) override {
    for (std::uint64_t done = 0; done < operations; ++done)
      transactions_->transaction(memory_, *engine_, random_);
  }

 private:
  [[nodiscard]] memory::HostOptions host_options(const Place& place) const {
    const std::uint64_t log = 4 * options_.log_bytes;
    const std::uint64_t ssd = options_.ssd_bytes == 0 ? 0 : 2 * options_.ssd_bytes + log + kExtra;
    memory::HostOptions options;
    options.capacities = memory::Capacities::of(2 * options_.dram_bytes + options_.pmem_bytes + kExtra,
                                                2 * options_.pmem_bytes + log + kExtra, ssd);
    options.pmem_path = place.path;
    options.large_pages = place.large_pages;
    options.best_flush = true;
    if (ssd != 0)
      options.block_path = ssd_.path();
    return options;
  }

  workloads::oltp::TemporaryFile ssd_;
  std::uint64_t seed_;
  engines::EngineOptions options_;
  HostMemory memory_;
  Random random_;
  std::unique_ptr<workloads::oltp::Transactions<HostMemory>> transactions_;
  std::unique_ptr<engines::Engine<HostMemory>> engine_;
};

}  // namespace

std::unique_ptr<Benchmark> make_oltp(Parameters& parameters, const Place& place) {
  return std::make_unique<Oltp>(parameters, place);
}

}  // namespace pmsim::host
