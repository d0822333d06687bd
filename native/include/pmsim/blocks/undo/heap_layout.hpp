#pragma once

#include <cstdint>
#include <string>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/blocks/undo/types.hpp"

namespace pmsim::blocks::undo {

/// Where the objects of a heap and their bits lie.
///
///     line 0: format, object size, run size | runs
///     run: bitmap, a bit for each unit, whole lines | 48 bytes | units
///     object: 16 bytes of header, which end a line; then its bytes, in as many units as that takes
///
/// A slot is the place of one object; all units of it have their bits in one word, which the hardware writes
/// atomically (PMDK keeps free blocks within words for the same reason: memblock.c).
class HeapLayout {
 public:
  static constexpr std::uint64_t kUnitBytes = 256;
  static constexpr std::uint64_t kHeaderBytes = 16;         ///< POBJ_HEADER_COMPACT
  static constexpr std::uint64_t kRunBytes = 256ULL << 10;  ///< CHUNKSIZE

  HeapLayout(const Place& place, std::uint64_t object_bytes, std::uint64_t run_bytes)
      : HeapLayout(object_bytes, run_bytes) {
    if (place.base % kLineBytes != 0 || place.bytes < kLineBytes + run_bytes)
      throw ConfigError("heap: a place of " + std::to_string(place.bytes) +
                        " bytes is too small for a run, or not on a line");
    base_ = place.base;
    runs_ = (place.bytes - kLineBytes) / run_bytes;
  }

  [[nodiscard]] std::uint64_t slots() const noexcept { return runs_ * slots_of_run_; }
  [[nodiscard]] std::uint64_t object_units() const noexcept { return object_units_; }

  /// The object of a slot, behind its header.
  [[nodiscard]] Address object(std::uint64_t slot) const noexcept {
    const std::uint64_t in_run = slot % slots_of_run_;
    const std::uint64_t unit = in_run / slots_of_word_ * kWordBits + in_run % slots_of_word_ * object_units_;
    return run(slot) + bitmap_bytes_ + kLineBytes + unit * kUnitBytes;
  }
  /// Throws ConfigError where no object begins.
  [[nodiscard]] std::uint64_t slot(Address object) const {
    if (object >= base_ + kLineBytes && object < base_ + kLineBytes + runs_ * run_bytes_) {
      const std::uint64_t offset = object - base_ - kLineBytes;
      const std::uint64_t unit = (offset % run_bytes_ - bitmap_bytes_ - kLineBytes) / kUnitBytes;
      const std::uint64_t slot = offset / run_bytes_ * slots_of_run_ + unit / kWordBits * slots_of_word_ +
                                 unit % kWordBits / object_units_;
      if (slot < slots() && this->object(slot) == object)
        return slot;
    }
    throw ConfigError("heap: there is no object at " + std::to_string(object));
  }
  /// The word of the bitmap with a slot's bits, and these.
  [[nodiscard]] Address word(std::uint64_t slot) const noexcept {
    return run(slot) + slot % slots_of_run_ / slots_of_word_ * sizeof(std::uint64_t);
  }
  [[nodiscard]] std::uint64_t mask(std::uint64_t slot) const noexcept {
    const std::uint64_t ones =
        object_units_ == kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << object_units_) - 1;
    return ones << (slot % slots_of_run_ % slots_of_word_ * object_units_);
  }

  /// Bytes of a place with room for so many objects.
  [[nodiscard]] static std::uint64_t place_bytes(std::uint64_t objects, std::uint64_t object_bytes,
                                                 std::uint64_t run_bytes) {
    const std::uint64_t of_run = HeapLayout(object_bytes, run_bytes).slots_of_run_;
    return kLineBytes + (objects + of_run - 1) / of_run * run_bytes;
  }

 private:
  static constexpr std::uint64_t kWordBits = 64;

  HeapLayout(std::uint64_t object_bytes, std::uint64_t run_bytes)
      : run_bytes_(run_bytes), object_units_((object_bytes + kHeaderBytes + kUnitBytes - 1) / kUnitBytes) {
    bitmap_bytes_ = log::round_up(run_bytes / kUnitBytes, kWordBits * kLineBytes / sizeof(std::uint64_t)) /
                    kWordBits * sizeof(std::uint64_t);
    if (object_bytes == 0 || object_units_ > kWordBits)
      throw ConfigError("heap: objects of " + std::to_string(object_bytes) + " bytes: choose 1 to " +
                        std::to_string(kWordBits * kUnitBytes - kHeaderBytes));
    const std::uint64_t before = bitmap_bytes_ + kLineBytes - kHeaderBytes;
    if (run_bytes % kLineBytes != 0 || run_bytes < before + object_units_ * kUnitBytes)
      throw ConfigError("heap: runs of " + std::to_string(run_bytes) + " bytes hold no object");
    slots_of_word_ = kWordBits / object_units_;
    const std::uint64_t units = (run_bytes - before) / kUnitBytes;
    slots_of_run_ = units / kWordBits * slots_of_word_ + units % kWordBits / object_units_;
  }

  [[nodiscard]] Address run(std::uint64_t slot) const noexcept {
    return base_ + kLineBytes + slot / slots_of_run_ * run_bytes_;
  }

  Address base_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t run_bytes_;
  std::uint64_t object_units_;
  std::uint64_t bitmap_bytes_ = 0;
  std::uint64_t slots_of_word_ = 0;
  std::uint64_t slots_of_run_ = 0;
};

}  // namespace pmsim::blocks::undo
