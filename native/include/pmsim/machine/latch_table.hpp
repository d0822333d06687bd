#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/latch_errors.hpp"
#include "pmsim/machine/line_map.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

using memory::LatchMode;

/// Who holds the latches of one lane, and who waits for them, in virtual time. What an algorithm finds in a
/// latch word says nothing about that: whole operations have been executed one after the other.
///
/// First come, first served: a reader that comes behind a waiting writer waits, too, so that nobody starves.
/// Optimistic readers hold nothing, and wait for the writer that holds the latch alone. That is another thread:
/// a thread's loads see its own stores before they commit (store forwarding; Intel SDM, volume 3, "Memory
/// Ordering in P6 and More Recent Processor Families"), and so a latch free that it has just given up.
/// An attempt always succeeds, and nobody waits for it: where it would have failed, the algorithm would have
/// gone another way, which has not been executed. Optimistic readers begin again because of it.
class LatchTable {
 public:
  /// A thread that has waited, and holds the latch of `line` since `at`.
  struct Grant {
    std::uint32_t thread;
    std::uint64_t line;
    Picoseconds at;
    bool looks = false;  ///< it does not hold it: an optimistic reader
  };

  explicit LatchTable(std::uint32_t threads) : latches_(kHeldAtFirst), waiting_(threads) {}

  /// False: the thread waits, and will be among the grants. A thread waits for one latch at a time.
  bool acquire(std::uint64_t line, LatchMode mode, std::uint32_t thread) {
    if (mode == LatchMode::kAttempt)
      return true;
    if (mode == LatchMode::kOptimistic) {
      Latch* const held = latches_.find(line);
      if (held == nullptr || !held->excludes(thread))
        return true;
      waiting_[thread] = Waiting{mode, held->looking};
      held->looking = thread;
      return false;
    }
    Latch& latch = latches_[line];
    if (latch.first == kNobody && latch.admits(mode)) {
      latch.hold(mode, thread);
      return true;
    }
    waiting_[thread] = Waiting{mode, kNobody};
    (latch.first == kNobody ? latch.first : waiting_[latch.last].next) = thread;
    latch.last = thread;
    return false;
  }

  void release(std::uint64_t line, LatchMode mode, Picoseconds at, std::uint32_t thread) {
    if (mode == LatchMode::kAttempt) {
      written_[line % written_.size()] = Written{line, at, thread};
      return;
    }
    Latch* const latch = latches_.find(line);
    const bool writer = mode == LatchMode::kExclusive;
    if (latch == nullptr || (writer ? latch->holders != kWriter : latch->holders <= 0)) [[unlikely]]
      throw NotHeldError("pmsim bug: a latch is released that is not held like that");
    latch->holders = writer ? 0 : latch->holders - 1;
    if (writer) {
      written_[line % written_.size()] = Written{line, at, thread};
      for (; latch->looking != kNobody; latch->looking = waiting_[latch->looking].next)
        grants_.push_back({latch->looking, line, at, true});
    }
    while (latch->first != kNobody && latch->admits(waiting_[latch->first].mode)) {
      const Waiting& next = waiting_[latch->first];
      latch->hold(next.mode, latch->first);
      grants_.push_back({latch->first, line, at});
      latch->first = next.next;
    }
    if (latch->holders == 0)
      latches_.erase(line);
  }

  /// Whether what the thread has read under the latch since `since` is worthless now. What it has written
  /// itself it knows, also where its release commits later than it has begun to read.
  [[nodiscard]] bool is_written(std::uint64_t line, Picoseconds since, std::uint32_t thread) {
    const Latch* const held = latches_.find(line);
    const Written& written = written_[line % written_.size()];
    return (held != nullptr && held->excludes(thread)) ||
           (written.line == line && written.at > since && written.by != thread);
  }

  [[nodiscard]] bool has_grants() const noexcept { return !grants_.empty(); }
  /// Those since the last call, in `into`.
  void take_grants(std::vector<Grant>& into) {
    into.clear();
    into.swap(grants_);
  }

 private:
  static constexpr std::size_t kHeldAtFirst = 512;
  static constexpr std::int32_t kWriter = -1;
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  struct Latch {
    std::int32_t holders = 0;                       ///< readers, or kWriter
    std::uint32_t writer = kNobody;                 ///< which that is
    std::uint32_t first = kNobody, last = kNobody;  ///< of those who wait to hold it
    std::uint32_t looking = kNobody;                ///< of optimistic readers

    [[nodiscard]] bool admits(LatchMode mode) const noexcept {
      return mode == LatchMode::kExclusive ? holders == 0 : holders >= 0;
    }
    /// An optimistic reader.
    [[nodiscard]] bool excludes(std::uint32_t thread) const noexcept {
      return holders == kWriter && writer != thread;
    }
    void hold(LatchMode mode, std::uint32_t thread) noexcept {
      writer = mode == LatchMode::kExclusive ? thread : kNobody;
      holders = mode == LatchMode::kExclusive ? kWriter : holders + 1;
    }
  };
  struct Waiting {
    LatchMode mode = LatchMode::kShared;
    std::uint32_t next = kNobody;  ///< thread behind this one
  };
  struct Written {
    std::uint64_t line = ~std::uint64_t{0};
    Picoseconds at = 0;
    std::uint32_t by = kNobody;
  };

  LineMap<Latch> latches_;               ///< those that are held
  std::vector<Waiting> waiting_;         ///< by thread
  std::array<Written, 4096> written_{};  ///< the latest releases of writers, direct-mapped by line
  std::vector<Grant> grants_;
};

}  // namespace pmsim::machine
