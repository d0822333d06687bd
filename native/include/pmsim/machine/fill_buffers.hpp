#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/buffer_pool.hpp"

namespace pmsim::machine {

/// The fill buffers of a core, which its hardware threads share and take in turns: nobody takes one that
/// another thread wants and whose turn comes before. How cores arbitrate is not published. That they must do it
/// is plain: streaming stores may take any buffer as it is freed, loads wait until more are free than those
/// that are kept back, and would wait for as long as another thread streams.
///
/// Invariant: of the threads that want one, that whose turn is next never waits for the others.
class FillBuffers : private BufferPool {
 public:
  /// What a thread may want buffers for at a time.
  enum Agent : std::uint8_t { kFrontEnd, kPendingLoads, kStoreQueue, kAgents };

  using BufferPool::all_wait;
  using BufferPool::BufferPool;
  using BufferPool::changes;
  using BufferPool::earliest_held_for;
  using BufferPool::release;

  /// One more hardware thread of the core; returns its number here. All join before anybody wants one.
  std::size_t join() {
    wanted_.emplace_back().fill(kNever);
    return wanted_.size() - 1;
  }

  /// When `thread`, which wants a common buffer from `from` on, may take one; kNever where all of them wait to
  /// be released, or others go first.
  [[nodiscard]] Picoseconds earliest(std::size_t thread, Picoseconds from) const noexcept {
    return in_turn(thread, std::max(from, BufferPool::earliest()));
  }
  /// The same for streaming stores, which may take any buffer.
  [[nodiscard]] Picoseconds earliest_of_all(std::size_t thread, Picoseconds from) const noexcept {
    return in_turn(thread, std::max(from, BufferPool::earliest_of_all()));
  }

  /// An agent of the thread wants a buffer from `from` on; kNever: it wants none.
  void want(std::size_t thread, Agent agent, Picoseconds from) noexcept {
    if (shared() && wanted_[thread][agent] != from) {
      wanted_[thread][agent] = from;
      touch();
    }
  }

  /// As BufferPool::take(), of `thread` at `at`. True: there are others who want one.
  bool take(std::size_t thread, Picoseconds at, Picoseconds until, Cause what) noexcept {
    BufferPool::take(until, what);
    return shared() && pass_turn(thread, at);
  }
  /// The same for BufferPool::take_waiting().
  bool take_waiting(std::size_t thread, Picoseconds at) noexcept {
    BufferPool::take_waiting();
    return shared() && pass_turn(thread, at);
  }

 private:
  [[nodiscard]] bool shared() const noexcept { return wanted_.size() > 1; }
  [[nodiscard]] std::size_t after(std::size_t thread) const noexcept {
    return thread + 1 == wanted_.size() ? 0 : thread + 1;
  }
  [[nodiscard]] bool wants(std::size_t thread, Picoseconds at) const noexcept {
    return std::any_of(wanted_[thread].begin(), wanted_[thread].end(),
                       [at](Picoseconds from) { return from <= at; });
  }
  [[nodiscard]] Picoseconds in_turn(std::size_t thread, Picoseconds free) const noexcept {
    if (!shared() || free == kNever) {
      return free;
    }
    free = std::max(free, taken_at_);
    for (std::size_t other = after(last_); other != thread; other = after(other)) {
      if (wants(other, free)) {
        return kNever;
      }
    }
    return free;
  }
  bool pass_turn(std::size_t thread, Picoseconds at) noexcept {
    last_ = thread;
    taken_at_ = at;
    for (std::size_t other = after(thread); other != thread; other = after(other)) {
      if (wants(other, kNever - 1)) {
        return true;
      }
    }
    return false;
  }

  std::vector<std::array<Picoseconds, kAgents>> wanted_;  ///< by thread: since when
  std::size_t last_ = 0;                                  ///< who has taken a buffer
  Picoseconds taken_at_ = 0;                              ///< who had to let him go first takes none before
};

}  // namespace pmsim::machine
