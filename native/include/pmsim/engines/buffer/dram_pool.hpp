#pragma once

#include <bit>
#include <cstdint>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/buffer/frame.hpp"

namespace pmsim::engines::buffer {

/// The DRAM of a buffer manager, one budget for full and mini pages: equal slots, each the frame of one full
/// page, or a slab that is cut into mini pages (15 at 16 KiB: 64 + 15 * 1088 of 16512 bytes). The paper says
/// that mini pages take 1088 bytes and share the pool, not how; slabs keep either kind from fragmenting the
/// other.
///
/// A slot begins with a FrameHead whatever it holds; that of a slab or of a free slot names no page. A slab
/// continues with the mask of its free places and the links of the list of slabs that have some.
class DramPool {
 public:
  DramPool() = default;
  DramPool(Address base, std::uint64_t slots, std::uint32_t page_bytes)
      : base_(base), slots_(slots), slot_bytes_(FullFrame{page_bytes}.bytes()) {}

  [[nodiscard]] std::uint64_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::uint32_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] Address slot(std::uint64_t index) const noexcept { return base_ + index * slot_bytes_; }
  /// Slots that have ever been in use: the first ones.
  [[nodiscard]] std::uint64_t fresh() const noexcept { return fresh_; }
  [[nodiscard]] std::uint32_t minis_per_slab() const noexcept {
    return (slot_bytes_ - kSlabHeader) / MiniFrame::kBytes;
  }
  [[nodiscard]] Address mini(Address slab, std::uint32_t index) const noexcept {
    return (slab + kSlabHeader + index * MiniFrame::kBytes) | kMiniTag;
  }
  [[nodiscard]] Address slab_of(Address mini) const noexcept {
    return base_ + (untagged(mini) - base_) / slot_bytes_ * slot_bytes_;
  }
  /// Free places in slabs.
  [[nodiscard]] std::uint64_t free_minis() const noexcept { return free_minis_; }
  [[nodiscard]] bool has_free_slot() const noexcept { return free_ != 0 || fresh_ < slots_; }
  template <memory::Memory M>
  [[nodiscard]] std::uint64_t free_mask(M& memory, Address slab) const {
    return memory.template load<std::uint64_t>(slab + kMask);
  }

  /// A free slot; 0: there is none. Its content is arbitrary.
  template <memory::Memory M>
  [[nodiscard]] Address take_slot(M& memory) {
    if (free_ != 0) {
      const Address slot = free_;
      free_ = memory.template load<Address>(slot + kNext);
      return slot;
    }
    return fresh_ < slots_ ? slot(fresh_++) : 0;
  }
  template <memory::Memory M>
  void give_slot(M& memory, Address slot) {
    memory.template store<FrameHead>(slot, FrameHead{.state = {.flags = kFree}, .id = kNoPage});
    memory.template store<Address>(slot + kNext, free_);
    free_ = slot;
  }
  /// Cuts a slot that is nobody's.
  template <memory::Memory M>
  void make_slab(M& memory, Address slot) {
    memory.template store<FrameHead>(slot, FrameHead{.state = {.flags = kSlab}, .id = kNoPage});
    memory.template store<std::uint64_t>(slot + kMask, all_free());
    free_minis_ += minis_per_slab();
    link(memory, slot);
  }
  /// A mini page's place, tagged; 0: no slab has one.
  template <memory::Memory M>
  [[nodiscard]] Address take_mini(M& memory) {
    if (room_ == 0)
      return 0;
    const Address slab = room_;
    const auto mask = memory.template load<std::uint64_t>(slab + kMask);
    memory.template store<std::uint64_t>(slab + kMask, mask & (mask - 1));
    --free_minis_;
    if ((mask & (mask - 1)) == 0)
      unlink(memory, slab);
    return mini(slab, static_cast<std::uint32_t>(std::countr_zero(mask)));
  }
  /// A slab without mini pages becomes a free slot again. Returns whether it has.
  template <memory::Memory M>
  bool give_mini(M& memory, Address mini) {
    const Address slab = slab_of(mini);
    const auto index = static_cast<std::uint32_t>((untagged(mini) - slab - kSlabHeader) / MiniFrame::kBytes);
    const auto before = memory.template load<std::uint64_t>(slab + kMask);
    const std::uint64_t mask = before | std::uint64_t{1} << index;
    ensure(mask != before, "a mini page is given back twice");
    ++free_minis_;
    if (mask == all_free()) {
      if (before != 0)
        unlink(memory, slab);
      free_minis_ -= minis_per_slab();
      give_slot(memory, slab);
      return true;
    }
    memory.template store<std::uint64_t>(slab + kMask, mask);
    if (before == 0)
      link(memory, slab);
    return false;
  }
  /// Takes a slab out of use while its last pages move elsewhere: take_mini() does not choose it. Then
  /// give_slot().
  template <memory::Memory M>
  void retire_slab(M& memory, Address slab) {
    const auto mask = memory.template load<std::uint64_t>(slab + kMask);
    free_minis_ -= static_cast<std::uint64_t>(std::popcount(mask));
    if (mask != 0)
      unlink(memory, slab);
  }

 private:
  static constexpr std::uint32_t kSlabHeader = kLineBytes;
  static constexpr Address kNext = FullFrame::kLink;
  static constexpr Address kMask = 16;
  static constexpr Address kBefore = 32;

  [[nodiscard]] std::uint64_t all_free() const noexcept { return (std::uint64_t{1} << minis_per_slab()) - 1; }
  template <memory::Memory M>
  void link(M& memory, Address slab) {
    memory.template store<Address>(slab + kNext, room_);
    memory.template store<Address>(slab + kBefore, 0);
    if (room_ != 0)
      memory.template store<Address>(room_ + kBefore, slab);
    room_ = slab;
  }
  template <memory::Memory M>
  void unlink(M& memory, Address slab) {
    const auto next = memory.template load<Address>(slab + kNext);
    const auto before = memory.template load<Address>(slab + kBefore);
    if (before != 0)
      memory.template store<Address>(before + kNext, next);
    else
      room_ = next;
    if (next != 0)
      memory.template store<Address>(next + kBefore, before);
  }

  Address base_ = 0;
  std::uint64_t slots_ = 0;
  std::uint32_t slot_bytes_ = 0;
  std::uint64_t fresh_ = 0;
  Address free_ = 0;  ///< slots given back
  Address room_ = 0;  ///< slabs with free places
  std::uint64_t free_minis_ = 0;
};

static_assert((FullFrame{16384}.bytes() - kLineBytes) / MiniFrame::kBytes == 15);

}  // namespace pmsim::engines::buffer
