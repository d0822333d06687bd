#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::wal {

using blocks::log::Lsn;

/// The dirty pages in the order of their first changes: ARIES's dirty page table with its recLSNs (Mohan et al.
/// 1992), as a queue, because LSNs ascend. In simulated DRAM; volatile.
///
/// Nothing is taken out of the middle: a page that is written back for another reason leaves its entry behind.
/// An entry counts where the page's frame still says that it is dirty since that LSN; who asks knows
/// (`current`). When the queue is full it drops the others; at least half of it is free then.
class DirtyQueue {
 public:
  struct alignas(16) Entry {
    PageId id = kNoPage;
    Lsn first = 0;  ///< where the transaction begins in the log that changed the page first
  };
  static_assert(sizeof(Entry) == 16);

  DirtyQueue() = default;
  /// For at most `pages` dirty ones; `base`: bytes_for(pages).
  DirtyQueue(Address base, std::uint64_t pages) : base_(base), mask_(capacity(pages) - 1) {}
  [[nodiscard]] static std::uint64_t bytes_for(std::uint64_t pages) noexcept {
    return capacity(pages) * sizeof(Entry);
  }

  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return end_ - begin_; }
  template <memory::Memory M>
  [[nodiscard]] Entry front(M& memory) const {
    return memory.template load<Entry>(at(begin_));
  }
  void pop() noexcept { ++begin_; }
  void clear() noexcept { begin_ = end_; }

  template <memory::Memory M, typename Current>
  void push(M& memory, const Entry& entry, Current&& current) {
    if (size() > mask_) [[unlikely]] {
      drop_stale(memory, current);
      ensure(size() <= mask_, "more dirty pages than there are frames");
    }
    std::uint64_t place = end_++;
    // The transaction of another thread began later and has ended before.
    for (; entry.first < latest_ && place != begin_; --place) {
      const auto before = memory.template load<Entry>(at(place - 1));
      if (before.first <= entry.first)
        break;
      memory.template store<Entry>(at(place), before);
    }
    memory.template store<Entry>(at(place), entry);
    latest_ = std::max(latest_, entry.first);
  }

 private:
  [[nodiscard]] static std::uint64_t capacity(std::uint64_t pages) noexcept { return std::bit_ceil(2 * pages); }
  [[nodiscard]] Address at(std::uint64_t index) const noexcept {
    return base_ + (index & mask_) * sizeof(Entry);
  }

  template <memory::Memory M, typename Current>
  void drop_stale(M& memory, Current&& current) {
    std::uint64_t kept = begin_;
    for (std::uint64_t index = begin_; index < end_; ++index) {
      const auto entry = memory.template load<Entry>(at(index));
      if (current(entry))
        memory.template store<Entry>(at(kept++), entry);
    }
    end_ = kept;
  }

  Address base_ = 0;
  std::uint64_t mask_ = 0;
  std::uint64_t begin_ = 0;  ///< both only grow
  std::uint64_t end_ = 0;
  Lsn latest_ = 0;  ///< `first` of all that have been here
};

}  // namespace pmsim::engines::wal
