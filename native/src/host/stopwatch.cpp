#include "pmsim/host/stopwatch.hpp"

#include <algorithm>
#include <chrono>

#include "pmsim/core/error.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace pmsim::host {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTscSeconds = 0.02;
constexpr int kEmpty = 2000;  ///< timings of nothing, whose median is the cost of timing

double median(std::vector<std::uint64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

}  // namespace

std::uint64_t Stopwatch::ticks() noexcept {
#if defined(__x86_64__)
  _mm_lfence();
  const std::uint64_t now = __rdtsc();
  _mm_lfence();
  return now;
#else
  return 0;
#endif
}

Stopwatch::Stopwatch(memory::HostMemory& memory, double gap_ns, bool drained)
    : memory_(memory), drained_(drained) {
  const Clock::time_point begin = Clock::now();
  const std::uint64_t first = ticks();
  double elapsed = 0;
  while (elapsed < kTscSeconds)
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::uint64_t last = ticks();
  if (last <= first)
    throw ConfigError("this machine has no usable time-stamp counter to take latencies by");
  ns_per_tick_ = elapsed * 1e9 / static_cast<double>(last - first);
  gap_ticks_ = static_cast<std::uint64_t>(gap_ns / ns_per_tick_);
  std::vector<std::uint64_t> empty;
  for (int count = 0; count < kEmpty; ++count) {
    const std::uint64_t start = ticks();
    fence();
    empty.push_back(ticks() - start);
  }
  empty_ = median(empty);
}

std::optional<double> Stopwatch::median_ns() {
  return taken_.empty() ? std::nullopt : std::optional((median(taken_) - empty_) * ns_per_tick_);
}

void Stopwatch::wait() const noexcept {
  const std::uint64_t begin = ticks();
  while (ticks() - begin < gap_ticks_) {
  }
}

void Stopwatch::fence() {
  memory_.sfence();
  if (drained_)
    memory_.mfence();
}

}  // namespace pmsim::host
