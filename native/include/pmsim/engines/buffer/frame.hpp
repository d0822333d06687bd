#pragma once

#include <array>
#include <cstdint>

#include "pmsim/engines/page_store.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::engines::buffer {

using memory::kLineBytes;

/// The first eight bytes of the header of every frame in DRAM.
///
/// The paper's fields are r (`resident`), d (`dirty`), count (of a mini page) and cnt (`children`,
/// section 3.3). A fix counter and the reference bit of clock belong to every buffer manager; the paper does
/// not list them.
struct alignas(8) FrameState {
  std::uint16_t fixes = 0;
  std::uint16_t children = 0;   ///< cnt: swizzled children; while there are any the page stays in DRAM
  std::uint8_t resident = 0;    ///< full page: r, all lines are here; mini page: count of lines
  std::uint8_t dirty = 0;       ///< full page: d, all of the page must be written back
  std::uint8_t referenced = 0;  ///< since clock's hand last came by
  std::uint8_t flags = 0;       ///< FrameFlag
};
static_assert(sizeof(FrameState) == 8);

enum FrameFlag : std::uint8_t {
  kSomeDirty = 1,   ///< something must be written back: d, or bits of the dirty mask
  kMoved = 2,       ///< changed other than by overwriting since the last write-back: needs a failure-atomic one
  kPinned = 4,      ///< changed by the open transaction: not written back before it ends (no-steal)
  kPromoted = 8,    ///< mini page: a wrapper around the full page that took its place
  kSlab = 16,       ///< no frame: a slot that is cut into mini pages
  kFree = 32,       ///< no frame
  kFormatted = 64,  ///< formatted since the last write-back: redo does not need what PMem holds
  kMasked = 128,    ///< full page: NVM-backed, with masks; otherwise it is whole, and written back whole
};

/// What a fix reads first: one aligned 16-byte load.
struct alignas(16) FrameHead {
  FrameState state;
  PageId id = kNoPage;
};
static_assert(sizeof(FrameHead) == 16);

/// Bytes of swizzling information in a frame: par, off and cnt with their padding (section 5.4.2).
inline constexpr std::uint32_t kSwizzleBytes = 16;

/// Layout of a full page's frame: header, then the page (Fig. 3). Offsets of the header's fields; the masks
/// grow with the page, 32 bytes each at 16 KiB. What a fix and a residency check need lies on the first line.
struct FullFrame {
  std::uint32_t page_bytes;

  static constexpr std::uint32_t kHead = 0;       ///< FrameHead: state and pId
  static constexpr std::uint32_t kPmem = 16;      ///< nvm: address of the page's frame on PMem; 0: none
  static constexpr std::uint32_t kLink = 24;      ///< of a free slot: the next one
  static constexpr std::uint32_t kResident = 32;  ///< mask
  [[nodiscard]] constexpr std::uint32_t mask_bytes() const noexcept {
    const std::uint32_t bytes = page_bytes / kLineBytes / 8;
    return bytes < 32 ? 32 : bytes;
  }
  [[nodiscard]] constexpr std::uint32_t dirty() const noexcept { return kResident + mask_bytes(); }
  [[nodiscard]] constexpr std::uint32_t parent() const noexcept { return dirty() + mask_bytes(); }  ///< par
  [[nodiscard]] constexpr std::uint32_t parent_offset() const noexcept { return parent() + 8; }  ///< off, 2 B
  [[nodiscard]] constexpr std::uint32_t header_bytes() const noexcept {
    return (parent_offset() + 2 + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  [[nodiscard]] constexpr std::uint32_t bytes() const noexcept { return header_bytes() + page_bytes; }
  [[nodiscard]] constexpr std::uint32_t lines() const noexcept { return page_bytes / kLineBytes; }

  /// The fields that the paper counts: 2 masks + nvm + pId + r + d (+ par + off).
  [[nodiscard]] constexpr std::uint32_t paper_bytes(bool swizzling) const noexcept {
    return 2 * (lines() / 8) + 8 + 8 + 1 + 1 + (swizzling ? 8 + 2 : 0);
  }
};

/// Layout of a mini page's frame: one line of header, then 16 lines of the page (Fig. 4).
struct MiniFrame {
  static constexpr std::uint32_t kHead = 0;    ///< FrameHead; FrameState::resident is `count`
  static constexpr std::uint32_t kPmem = 16;   ///< nvm
  static constexpr std::uint32_t kFull = 24;   ///< the full page of a partially promoted one
  static constexpr std::uint32_t kSlots = 32;  ///< 16 x 1 byte: which line of the page; ascending
  static constexpr std::uint32_t kParent = 48;
  static constexpr std::uint32_t kParentOffset = 56;
  static constexpr std::uint32_t kDirty = 58;  ///< mask over the slots, 2 bytes
  static constexpr std::uint32_t kHeaderBytes = 64;
  static constexpr std::uint32_t kCapacity = 16;
  static constexpr std::uint32_t kBytes = kHeaderBytes + kCapacity * kLineBytes;

  [[nodiscard]] static constexpr std::uint32_t paper_bytes(bool swizzling) noexcept {
    return 8 + kCapacity + 8 + 1 + 2 + 8 + (swizzling ? 8 + 2 : 0);
  }
};

/// The slots array of a mini page: one aligned 16-byte load.
struct alignas(16) MiniSlots {
  std::array<std::uint8_t, MiniFrame::kCapacity> line{};
};
static_assert(MiniFrame::kSlots % sizeof(MiniSlots) == 0);

/// Of a dirty frame, full or mini: from where the log must be redone for it (ARIES's recLSN); 0: it is clean,
/// or its first change is the open transaction's. A free slot has its link there, a wrapper its full page.
inline constexpr std::uint32_t kFirstChange = FullFrame::kLink;
static_assert(kFirstChange == MiniFrame::kFull);

// The paper's numbers (sections 3.1, 3.2, 3.3 and 5.4.2).
static_assert(FullFrame{16384}.lines() == 256 && FullFrame{16384}.mask_bytes() == 32);
static_assert(FullFrame{16384}.paper_bytes(false) == 82 && FullFrame{16384}.paper_bytes(true) == 92);
static_assert(FullFrame{16384}.header_bytes() == 2 * kLineBytes);
static_assert(128.0 / 16384 < 0.008);
static_assert(MiniFrame::paper_bytes(false) == 43 && MiniFrame::paper_bytes(true) == 53);
static_assert(MiniFrame::kBytes == 1088 && MiniFrame::kHeaderBytes == kLineBytes);
static_assert(43.0 / 16384 < 0.003);
static_assert(sizeof(std::uint64_t) + sizeof(std::uint16_t) + sizeof(std::uint16_t) <= kSwizzleBytes);

/// A frame is named by its address. Frames begin at multiples of 64, so low bits are free to say what it is.
inline constexpr Address kMiniTag = 1;   ///< a mini page
inline constexpr Address kWholeTag = 2;  ///< only in a handle: a full page, all lines of which are here
inline constexpr Address kTags = kLineBytes - 1;
[[nodiscard]] constexpr bool is_mini(Address frame) noexcept { return (frame & kMiniTag) != 0; }
[[nodiscard]] constexpr Address untagged(Address frame) noexcept { return frame & ~kTags; }
[[nodiscard]] constexpr bool on_pmem(Address frame) noexcept {
  return memory::medium_of(frame) == memory::Medium::kPmem;
}

/// The most significant bit of a swip: a frame's address, tags included, instead of a page's id.
inline constexpr Swip kSwizzled = Swip{1} << 63;

/// A fixed page, valid until it is unfixed. The frame may meanwhile be promoted: the handle stays good.
struct FixedPage {
  Address frame = 0;  ///< in DRAM, tagged; or on PMem, where pages are used directly
  PageId id = kNoPage;
  bool chosen = false;  ///< spitfire: its fix has thrown Dw, and a change on PMem must not do so again
};

/// How a page changes. Overwritten bytes can be redone in place whatever a crash has torn; moved ones cannot.
enum class Change : std::uint8_t { kOverwrite, kMove };

}  // namespace pmsim::engines::buffer
