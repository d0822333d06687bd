#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/fptree/layout.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::engines::fptree {

/// The region of the leaves on PMem, their links, and which of them are free.
///
///   leaves   count x 960 bytes, each beginning on a line
///   links    count x 8 bytes: address of the next leaf to the right, or 0
///
/// 960 bytes are filled by 56 entries, their fingerprints and the bitmap, so the link lies apart.
///
/// A leaf that no table's list reaches is free: nothing durable says so, a restart finds it out, and no crash
/// can lose one. While running, free leaves are those above a mark and a stack of numbers in DRAM.
template <memory::Memory M>
class LeafSpace {
 public:
  /// Bytes of the region per leaf.
  static constexpr std::uint64_t kEach = kLinkedLeafBytes;

  LeafSpace(Address leaves, std::uint64_t bytes, Address free_stack)
      : leaves_(leaves), count_(bytes / kEach), links_(leaves + count_ * Leaf::kBytes), stack_(free_stack) {}

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t used() const noexcept { return mark_ - stacked_; }
  [[nodiscard]] bool full() const noexcept { return used() == count_; }
  [[nodiscard]] Address leaf(std::uint64_t number) const noexcept { return leaves_ + number * Leaf::kBytes; }
  [[nodiscard]] std::uint64_t number(Address leaf) const {
    ensure(leaf >= leaves_ && leaf < links_ && (leaf - leaves_) % Leaf::kBytes == 0,
           "fptree: no leaf is there");
    return (leaf - leaves_) / Leaf::kBytes;
  }
  [[nodiscard]] Address link(Address leaf) const { return links_ + number(leaf) * 8; }

  [[noreturn]] void refuse() const {
    throw CapacityError("engine fptree: pmem_bytes = " + std::to_string(count_ * kEach) + ": its " +
                        std::to_string(count_) + " leaves are full; raise it");
  }
  /// Throws CapacityError when there is none. Its bytes are whatever they were.
  [[nodiscard]] Address take(M& memory) {
    if (stacked_ > 0)
      return leaf(memory.template load<std::uint32_t>(stack_ + --stacked_ * 4));
    if (mark_ == count_)
      refuse();
    return leaf(mark_++);
  }
  void give(M& memory, Address leaf) {
    memory.template store<std::uint32_t>(stack_ + stacked_++ * 4, static_cast<std::uint32_t>(number(leaf)));
  }

  /// After a restart: these leaves are in use.
  void rebuild(M& memory, const std::vector<bool>& in_use) {
    mark_ = in_use.size();
    stacked_ = 0;
    for (std::uint64_t number = 0; number < mark_; ++number) {
      if (!in_use[number])
        give(memory, leaf(number));
    }
  }

 private:
  Address leaves_;
  std::uint64_t count_;
  Address links_;
  Address stack_;
  std::uint64_t mark_ = 0;
  std::uint64_t stacked_ = 0;
};

}  // namespace pmsim::engines::fptree
