#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "pmsim/engines/buffer/frame.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::buffer {

/// What the transactions that have not ended yet keep from being written back: the frames that each thread's
/// has changed, and the pages that it has given back. On the host, as what a thread knows by itself.
///
/// Invariant: a frame's head says kPinned exactly where a thread has pinned it. Two can have: the second one
/// has changed the page after the first one's last operation, before that was durable.
class Pins {
 public:
  explicit Pins(std::uint32_t threads) : threads_(std::max(threads, 1U)) {
    for (Thread& thread : threads_)
      thread.frames.reserve(64);
  }

  void work_as(std::uint32_t thread) noexcept { mine_ = thread % threads_.size(); }

  /// Of the thread that works.
  [[nodiscard]] std::span<const Address> frames() const noexcept { return threads_[mine_].frames; }
  [[nodiscard]] std::span<const PageId> releases() const noexcept { return threads_[mine_].releases; }
  /// Of a frame that is pinned: whether the thread that works has done so.
  [[nodiscard]] bool is_mine(Address frame) const noexcept { return are_all_mine() || has(mine_, frame); }
  [[nodiscard]] bool is_others(Address frame) const noexcept {
    if (are_all_mine()) [[likely]]
      return false;
    for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
      if (thread != mine_ && has(thread, frame))
        return true;
    }
    return false;
  }
  void add(Address frame) {
    threads_[mine_].frames.push_back(frame);
    ++pinned_;
  }
  /// Its page has moved.
  void replace(Address frame, Address by) {
    for (Thread& thread : threads_)
      std::replace(thread.frames.begin(), thread.frames.end(), frame, by);
  }
  void add_release(PageId id) { threads_[mine_].releases.push_back(id); }
  void clear_frames() noexcept {
    pinned_ -= threads_[mine_].frames.size();
    threads_[mine_].frames.clear();
  }
  /// By all threads.
  [[nodiscard]] std::uint64_t count() const noexcept { return pinned_; }
  void clear_releases() noexcept { threads_[mine_].releases.clear(); }
  /// Of all threads.
  [[nodiscard]] bool empty() const noexcept {
    return std::ranges::all_of(threads_,
                               [](const Thread& t) { return t.frames.empty() && t.releases.empty(); });
  }

 private:
  struct Thread {
    std::vector<Address> frames;
    std::vector<PageId> releases;
  };
  [[nodiscard]] bool are_all_mine() const noexcept { return pinned_ == threads_[mine_].frames.size(); }
  [[nodiscard]] bool has(std::size_t thread, Address frame) const noexcept {
    const std::vector<Address>& frames = threads_[thread].frames;
    return std::find(frames.begin(), frames.end(), frame) != frames.end();
  }

  std::vector<Thread> threads_;
  std::size_t mine_ = 0;
  std::uint64_t pinned_ = 0;  ///< frames, by all threads
};

}  // namespace pmsim::engines::buffer
