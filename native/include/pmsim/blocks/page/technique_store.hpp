#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "pmsim/blocks/page/checksum.hpp"
#include "pmsim/blocks/page/cow_invalidate.hpp"
#include "pmsim/blocks/page/hybrid.hpp"
#include "pmsim/core/poll.hpp"

namespace pmsim::blocks::page {

enum class Technique : std::uint8_t { kCow, kCowLoad, kCowInvalidate, kMicroLog, kHybrid, kChecksum, kCrcOnly };

/// The names of the techniques, in the order of the enumeration. The last one computes and writes nothing.
inline constexpr std::array<std::string_view, 7> kTechniqueNames{
    "cow", "cow-load", "cow-invalidate", "microlog", "hybrid", "checksum", "crc32c"};

/// A page store of any technique that writes pages: one choice per page, none per line. What is durable when is
/// each store's affair; flush() is durable when it has ended.
///
/// cow-load is copy on write of frames that hold only their dirty lines: the caller's frames say so.
class TechniqueStore {
 public:
  template <memory::Memory M>
  TechniqueStore(M& memory, const StoreOptions& options, Technique technique, const CostModel& costs)
      : options_(options), store_(make(memory, options, technique, costs)) {}

  /// Every page lies in a slot, with the content that is there: of each writer its pages, then its spare slots.
  /// Durable after the caller's fence. Checksummed pages have their places and need nothing. `poll` works page
  /// by page.
  template <memory::Memory M>
  void install(M& memory, Poll poll = {}) {
    const std::uint64_t per_writer = options_.pages / options_.writers;
    const auto place = [&](PageId page) {
      return static_cast<SlotId>(page + page / per_writer * options_.spare_slots);
    };
    const auto install_in = [&](auto& slots) {
      poll.expect(options_.pages);
      for (PageId page = 0; page < options_.pages; ++page) {
        slots.install(memory, page, place(page));
        poll.worked();
      }
      slots.deal_free();
    };
    if (auto* versioned = std::get_if<PageStore>(&store_))
      install_in(versioned->slots());
    else if (auto* invalidating = std::get_if<CowInvalidate>(&store_))
      install_in(*invalidating);
  }

  /// Makes the frame's content the page's, durably. Returns whether it took a micro log.
  template <memory::Memory M>
  bool flush(M& memory, std::uint32_t writer, PageId page, Frame& frame) {
    if (auto* versioned = std::get_if<PageStore>(&store_))
      return versioned->flush(memory, writer, page, frame);
    if (auto* invalidating = std::get_if<CowInvalidate>(&store_))
      invalidating->flush(memory, writer, page, frame);
    else
      std::get<ChecksumStore>(store_).flush(memory, page, frame);
    return false;
  }

  /// Checksummed pages only: what repairs the page when its next flush is torn is the frame, which has just
  /// been flushed. Nothing for the others, whose flush leaves no torn page.
  template <memory::Memory M>
  void renew_snapshot(M& memory, PageId page, const Frame& frame) {
    if (auto* checksummed = std::get_if<ChecksumStore>(&store_))
      checksummed->snapshot(memory, page, frame);
  }

  /// After a crash; see each store's. True where it has brought the pages into `frames` (checksummed ones,
  /// which it must read to judge them).
  template <memory::Memory M>
  bool recover(M& memory, std::span<Frame> frames) {
    if (auto* versioned = std::get_if<PageStore>(&store_))
      versioned->recover(memory);
    else if (auto* invalidating = std::get_if<CowInvalidate>(&store_))
      invalidating->recover(memory);
    else
      std::get<ChecksumStore>(store_).recover(memory, frames);
    return std::holds_alternative<ChecksumStore>(store_);
  }

  /// Where the page's durable copy is; nothing where it has none.
  [[nodiscard]] std::optional<Address> payload(PageId page) const {
    if (const auto* checksummed = std::get_if<ChecksumStore>(&store_))
      return checksummed->home().payload(static_cast<SlotId>(page));
    const auto* versioned = std::get_if<PageStore>(&store_);
    const SlotId slot =
        versioned != nullptr ? versioned->slots().at(page).slot : std::get<CowInvalidate>(store_).slot_of(page);
    if (slot == kNoSlot)
      return std::nullopt;
    return (versioned != nullptr ? versioned->slots().area() : std::get<CowInvalidate>(store_).area())
        .payload(slot);
  }

  /// Of slots and snapshots.
  [[nodiscard]] std::uint64_t pmem_bytes() const noexcept {
    const SlotArea area{.slots = slots(options_), .page_bytes = options_.page_bytes};
    return area.slots * area.stride() * (std::holds_alternative<ChecksumStore>(store_) ? 2 : 1);
  }

 private:
  using Store = std::variant<PageStore, CowInvalidate, ChecksumStore>;

  [[nodiscard]] static std::uint64_t slots(const StoreOptions& options) noexcept {
    return options.pages + options.writers * options.spare_slots;
  }

  template <memory::Memory M>
  [[nodiscard]] static Store make(M& memory, const StoreOptions& options, Technique technique,
                                  const CostModel& costs) {
    switch (technique) {
      case Technique::kCow:
      case Technique::kCowLoad:
        return PageStore(memory, options, Choice::kCow, costs);
      case Technique::kMicroLog:
        return PageStore(memory, options, Choice::kMicroLog, costs);
      case Technique::kHybrid:
        return PageStore(memory, options, Choice::kByCost, costs);
      case Technique::kCowInvalidate:
        return CowInvalidate(SlotArea::allocate(memory, slots(options), options.page_bytes), options);
      case Technique::kChecksum:
        return ChecksumStore(memory, options, 1);
      case Technique::kCrcOnly:
        break;
    }
    throw ConfigError("technique: crc32c alone writes no page");
  }

  StoreOptions options_;
  Store store_;
};

}  // namespace pmsim::blocks::page
