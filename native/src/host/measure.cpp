#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "pmsim/host/benchmark.hpp"

namespace pmsim::host {

namespace {

using Clock = std::chrono::steady_clock;

/// The clock is read once per batch: some 100 reads in a repetition, each 20 to 30 ns.
constexpr double kBatchesPerRepetition = 100;
/// Batches that are prepared for a repetition: the last one of the warm-up took up to twice its time.
constexpr std::uint64_t kPrepared = 200;
/// Long enough for the clock frequency and the caches to settle.
constexpr double kWarmupSeconds = 0.02;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

bool pin_this_thread(int processor) {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  return ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) == 0;
#else
  static_cast<void>(processor);
  return false;
#endif
}

/// What one thread did in one repetition. Its time is processor time: benchmarks never sleep, so on an idle
/// machine that is elapsed time, and on a busy one it leaves out what other processes took.
struct Part {
  std::uint64_t operations = 0;
  double elapsed = 0;
  double cpu = 0;
};

/// Operations for `seconds`, at most `limit` (0: no limit), in batches of `batch`.
Part work(Benchmark& benchmark, std::uint32_t thread, double seconds, std::uint64_t batch) {
  const std::uint64_t limit = benchmark.limit();
  Part part;
  const double cpu_before = thread_cpu_seconds();
  const Clock::time_point begin = Clock::now();
  do {
    const std::uint64_t count = limit == 0 ? batch : std::min(batch, limit - part.operations);
    benchmark.run(thread, count);
    part.operations += count;
    part.elapsed = seconds_since(begin);
  } while (part.elapsed < seconds && (limit == 0 || part.operations < limit));
  part.cpu = thread_cpu_seconds() - cpu_before;
  return part;
}

/// Runs the benchmark for a while on this thread; returns a batch that takes about `seconds`.
std::uint64_t warm_up(Benchmark& benchmark, std::uint32_t thread, double seconds) {
  std::uint64_t batch = 1;
  const Clock::time_point begin = Clock::now();
  double last = 0;
  benchmark.warm(thread);
  const std::uint64_t limit = benchmark.limit();
  std::uint64_t done = 0;
  while (seconds_since(begin) < kWarmupSeconds || last < seconds) {
    if (limit > 0 && done + batch > limit)
      break;
    benchmark.prepare(thread, batch);
    const Clock::time_point batch_begin = Clock::now();
    benchmark.run(thread, batch);
    done += batch;
    last = seconds_since(batch_begin);
    if (last < seconds)
      batch *= 2;
  }
  return batch;
}

Sample sample_of(const std::vector<Part>& parts, std::uint32_t group, std::optional<double> own_time_ns) {
  Sample sample;
  double operations = 0;
  double cpu = 0;
  for (const Part& part : parts) {
    const double done = static_cast<double>(part.operations) * group;
    operations += done;
    cpu += part.cpu;
    sample.operations_per_s += done / part.cpu;
    sample.cpu_share = std::min(sample.cpu_share, part.cpu / part.elapsed);
  }
  sample.ns_per_operation = own_time_ns.value_or(cpu * 1e9 / operations);
  return sample;
}

}  // namespace

std::vector<int> usable_processors() {
  std::vector<int> found;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (CPU_ISSET(static_cast<std::size_t>(processor), &set))
        found.push_back(processor);
    }
  }
#endif
  if (found.empty()) {
    for (unsigned processor = 0; processor < std::max(1U, std::thread::hardware_concurrency()); ++processor)
      found.push_back(static_cast<int>(processor));
  }
  return found;
}

Measured measure(Benchmark& benchmark, const RunOptions& options) {
  const std::uint32_t threads = benchmark.threads();
  const std::vector<int> processors = usable_processors();
  std::vector<Part> parts(threads);
  std::vector<std::uint64_t> batches(threads, 1);
  std::atomic<bool> pinned{true};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  // Every thread and this one come to the gate twice per repetition, ready and go, whatever has failed
  // meanwhile; only `done`, written here before a go, lets threads leave.
  bool done = false;
  std::barrier gate(static_cast<std::ptrdiff_t>(threads) + 1);

  const auto guarded = [&](const auto& action) {
    try {
      action();
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure)
        failure = std::current_exception();
      failed = true;
    }
  };
  const auto thread_main = [&](std::uint32_t thread) {
    if (!pin_this_thread(processors[thread % processors.size()]))
      pinned = false;
    guarded([&] { batches[thread] = warm_up(benchmark, thread, options.seconds / kBatchesPerRepetition); });
    for (;;) {
      gate.arrive_and_wait();  // ready
      gate.arrive_and_wait();  // go
      if (done)
        return;
      guarded([&] {
        benchmark.warm(thread);
        parts[thread] = work(benchmark, thread, options.seconds, batches[thread]);
      });
    }
  };
  Measured result;
  std::vector<std::jthread> team;
  for (std::uint32_t thread = 0; thread < threads; ++thread)
    team.emplace_back(thread_main, thread);
  gate.arrive_and_wait();  // ready
  for (std::uint32_t repetition = 0; repetition < options.repetitions && !failed; ++repetition) {
    guarded([&] {
      if (options.poll)
        options.poll();
      for (std::uint32_t thread = 0; thread < threads; ++thread)
        benchmark.prepare(thread, kPrepared * batches[thread]);
      benchmark.reset();
    });
    if (failed)
      break;
    gate.arrive_and_wait();  // go
    gate.arrive_and_wait();  // ready
    if (!failed)
      result.samples.push_back(sample_of(parts, benchmark.group(), benchmark.own_time_ns()));
  }
  done = true;
  gate.arrive_and_wait();  // go
  team.clear();
  if (failure)
    std::rethrow_exception(failure);
  result.pinned = pinned;
  return result;
}

}  // namespace pmsim::host
