#pragma once

#include <cstdint>

#include "pmsim/engines/buffer/frame.hpp"

namespace pmsim::engines::buffer {

/// The frames of PMem as a cache: pages without anything around them, and for each a descriptor in DRAM with
/// what replacement needs. The hand of their clock. Volatile; a restart rebuilds it from the pages
/// (section 4.4).
class PmemPool {
 public:
  struct alignas(16) Descriptor {
    PageId id = kNoPage;  ///< kNoPage: the frame is free, and `link` the next free one (number + 1)
    std::uint32_t link = 0;
    std::uint16_t fixes = 0;      ///< of the page where it lies (spitfire)
    std::uint8_t referenced = 0;  ///< since the hand last came by; kInDram
    std::uint8_t flags = 0;
  };
  static_assert(sizeof(Descriptor) == 16);
  static constexpr std::uint8_t kDirty = 1;  ///< the SSD has an older version
  static constexpr std::uint8_t kMigrated =
      2;  ///< in DRAM by now, while somebody holds it fixed here (spitfire)

  /// DRAM has a frame over this one, and may lack lines of it: as long as it does, this one stays. Said in the
  /// place of the reference bit, so that the hand reads it with that, and asks no page table.
  static constexpr std::uint8_t kInDram = 2;

  PmemPool() = default;
  PmemPool(Address frames, Address descriptors, std::uint64_t count, std::uint32_t page_bytes)
      : frames_(frames), descriptors_(descriptors), count_(count), page_bytes_(page_bytes) {}
  [[nodiscard]] static std::uint64_t bytes_for(std::uint64_t count) noexcept {
    return count * sizeof(Descriptor);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t fresh() const noexcept { return fresh_; }
  [[nodiscard]] Address frame(std::uint64_t index) const noexcept { return frames_ + index * page_bytes_; }
  [[nodiscard]] std::uint64_t index_of(Address frame) const noexcept { return (frame - frames_) / page_bytes_; }
  [[nodiscard]] Address descriptor(Address frame) const noexcept {
    return descriptors_ + index_of(frame) * sizeof(Descriptor);
  }
  template <memory::Memory M>
  [[nodiscard]] Descriptor load(M& memory, Address frame) const {
    return memory.template load<Descriptor>(descriptor(frame));
  }
  template <memory::Memory M>
  void store(M& memory, Address frame, const Descriptor& value) const {
    memory.template store<Descriptor>(descriptor(frame), value);
  }
  /// DRAM has a frame of the page from now on.
  template <memory::Memory M>
  void cover(M& memory, Address frame) {
    memory.template store<std::uint8_t>(descriptor(frame) + kReferencedAt, kInDram);
    ++covered_;
  }
  /// It has none any more, and has used the page until now.
  template <memory::Memory M>
  void uncover(M& memory, Address frame) {
    memory.template store<std::uint8_t>(descriptor(frame) + kReferencedAt, 1);
    --covered_;
  }
  [[nodiscard]] std::uint64_t covered() const noexcept { return covered_; }
  /// Where no frame is free: whether the hand finds one to evict within some steps. Where DRAM has frames over
  /// nearly all of them, it would go round for each, the longer the more there are.
  [[nodiscard]] bool can_replace() const noexcept {
    return covered_ < count_ && (count_ - covered_) * kReach >= count_;
  }
  template <memory::Memory M>
  void set_flags(M& memory, Address frame, std::uint8_t flags) const {
    memory.template store<std::uint8_t>(descriptor(frame) + kFlagsAt, flags);
  }

  /// A free frame, whose content is no valid page; 0: there is none.
  template <memory::Memory M>
  [[nodiscard]] Address take(M& memory) {
    if (free_ != 0) {
      const Address taken = frame(free_ - 1);
      free_ = load(memory, taken).link;
      return taken;
    }
    return fresh_ < count_ ? frame(fresh_++) : 0;
  }
  [[nodiscard]] bool has_free() const noexcept { return free_ != 0 || fresh_ < count_; }
  template <memory::Memory M>
  void give(M& memory, Address frame) {
    store(memory, frame, Descriptor{.link = static_cast<std::uint32_t>(free_)});
    free_ = index_of(frame) + 1;
  }
  /// The frame below clock's hand, which moves on.
  [[nodiscard]] Address advance() noexcept {
    const Address under = frame(hand_);
    hand_ = hand_ + 1 == count_ ? 0 : hand_ + 1;
    return under;
  }
  /// During a restart: frames are told of in ascending order, the free ones too.
  template <memory::Memory M>
  void restore(M& memory, Address frame, PageId id, bool dirty) {
    fresh_ = count_;
    if (id == kNoPage)
      return give(memory, frame);
    store(memory, frame, Descriptor{.id = id, .flags = dirty ? kDirty : std::uint8_t{0}});
  }

 private:
  static constexpr std::uint64_t kReach = 16;  ///< frames that the hand passes for one without a frame in DRAM
  static constexpr Address kReferencedAt = 14;
  static constexpr Address kFlagsAt = 15;

  Address frames_ = 0;
  Address descriptors_ = 0;
  std::uint64_t count_ = 0;
  std::uint32_t page_bytes_ = 0;
  std::uint64_t fresh_ = 0;
  std::uint64_t free_ = 0;  ///< number + 1
  std::uint64_t hand_ = 0;
  std::uint64_t covered_ = 0;  ///< frames of which DRAM has one
};

}  // namespace pmsim::engines::buffer
