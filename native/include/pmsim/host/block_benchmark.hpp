#pragma once

#include <cstdint>

#include "pmsim/host/benchmark.hpp"
#include "pmsim/host/region.hpp"

namespace pmsim::host {

/// The driver of a building block (blocks/<family>/driver.hpp) on HostMemory: the code that its simulated
/// workload runs, one operation after the other. Before each repetition everything that it has allocated is
/// flushed out of the caches, so that a repetition hardly finds a line there; simulated blocks with lines at
/// random places are warm, so they stand beside it with a small last-level cache (`cold`, host_timing.py).
template <template <typename> class Driver>
class BlockBenchmark final : public Benchmark {
 public:
  /// `bytes`: what the driver allocates of either medium, at most.
  template <typename Options>
  BlockBenchmark(const Place& place, std::uint64_t bytes, std::uint32_t threads, const Options& options)
      : threads_(threads), memory_(host_memory(place, bytes)), driver_(memory_, options) {
    touch_regions(memory_);
  }

  [[nodiscard]] std::uint32_t threads() const override { return threads_; }
  [[nodiscard]] std::uint32_t group() const override {
    if constexpr (requires { driver_.group(); })
      return driver_.group();
    else
      return 1;
  }
  [[nodiscard]] bool is_dax() const override { return memory_.pmem_is_dax(); }

  void prepare(std::uint32_t thread, std::uint64_t operations) override {
    if constexpr (kChoosesAhead)
      driver_.prepare(memory_, thread, operations);
  }

  void reset() override { evict(memory_); }

  void run(std::uint32_t thread, std::uint64_t operations) override {
    for (std::uint64_t done = 0; done < operations; ++done) {
      if constexpr (!kChoosesAhead && requires { driver_.prepare(memory_, thread); })
        driver_.prepare(memory_, thread);
      driver_.operation(memory_, thread);
    }
  }

 private:
  /// Where choosing an operation reads the memory under test, it would warm the caches for it.
  static constexpr bool kChoosesAhead =
      requires(Driver<memory::HostMemory>& driver, memory::HostMemory& memory) {
        driver.prepare(memory, std::uint32_t{0}, std::uint64_t{0});
      };

  std::uint32_t threads_;
  memory::HostMemory memory_;
  Driver<memory::HostMemory> driver_;
};

/// Room for the alignment of a region to 2 MiB.
inline constexpr std::uint64_t kRegionSlack = std::uint64_t{1} << 21;

}  // namespace pmsim::host
