#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pmsim::host {

/// Where a benchmark puts its memory.
struct Place {
  std::string path;         ///< file behind the pmem window; empty: anonymous memory, which is DRAM
  bool large_pages = true;  ///< ask for 2 MiB pages; what the system grants is its business
};

/// A piece of work that can be timed on this machine. Threads call run() at once, each with a number of its
/// own.
class Benchmark {
 public:
  Benchmark() = default;
  Benchmark(const Benchmark&) = delete;
  Benchmark& operator=(const Benchmark&) = delete;
  virtual ~Benchmark() = default;

  [[nodiscard]] virtual std::uint32_t threads() const { return 1; }
  /// Bytes that one operation moves; 0 where that means nothing.
  [[nodiscard]] virtual std::uint64_t bytes_per_operation() const { return 0; }
  /// Operations that a thread may do in one repetition; 0: as many as fit into its time.
  [[nodiscard]] virtual std::uint64_t limit() const { return 0; }
  /// Not timed: chooses what the next `operations` of a thread do, where choosing is not part of them. A thread
  /// that does more chooses itself.
  virtual void prepare(std::uint32_t thread, std::uint64_t operations) {
    static_cast<void>(thread);
    static_cast<void>(operations);
  }
  /// Before each repetition and after prepare(), not timed: back to the state in which it should start.
  virtual void reset() {}
  /// After reset(), not timed: what a thread does itself before its part of a repetition, for its own caches.
  virtual void warm(std::uint32_t thread) { static_cast<void>(thread); }
  /// Operations that run() counts as one: those that a block can only do as a group.
  [[nodiscard]] virtual std::uint32_t group() const { return 1; }
  /// Executes operations of one thread, or as many groups.
  virtual void run(std::uint32_t thread, std::uint64_t operations) = 0;
  /// Time of an operation [ns] in the last repetition, where the benchmark itself has taken it; otherwise it
  /// follows from the number of operations.
  [[nodiscard]] virtual std::optional<double> own_time_ns() { return std::nullopt; }
  /// True where the memory under test is a DAX mapping made with MAP_SYNC.
  [[nodiscard]] virtual bool is_dax() const { return false; }
};

struct RunOptions {
  std::uint32_t repetitions = 15;
  /// Length of one repetition. Short ones are rarely interrupted; the median forgets those that are.
  double seconds = 0.01;
  /// Called between repetitions; may throw, for example because the user pressed Ctrl-C.
  std::function<void()> poll;
};

/// One repetition. Groups count with all their operations.
struct Sample {
  double ns_per_operation = 0;  ///< of one thread
  double operations_per_s = 0;  ///< of all threads together
  double cpu_share = 1;         ///< processor time over elapsed time, of the thread that was disturbed most
};

struct Measured {
  std::vector<Sample> samples;
  bool pinned = false;  ///< each thread stayed on one processor
};

/// Times a benchmark: warms up, then repeats; in a repetition all threads start together.
[[nodiscard]] Measured measure(Benchmark& benchmark, const RunOptions& options);

/// Processors that this process may use.
[[nodiscard]] std::vector<int> usable_processors();

}  // namespace pmsim::host
