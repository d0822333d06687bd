#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "pmsim/blocks/page/layout.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/buffer/sites.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::buffer {

/// Which page ids are in use: one bit each, in simulated DRAM, and two durable copies written in turn.
///
/// What is durable when: persist() returns when a copy has the map; until then the other copy is the map, as of
/// the persist() before. What happened since is in the log: an allocation or release sets its bit to what it
/// says, so redoing them all, in order, over either map gives the latest one.
class PageAllocator {
 public:
  PageAllocator() = default;
  /// `bits`: map_bytes(pages) of DRAM. `copies`: copies_bytes(pages) of PMem or of the SSD. `sector`: 512 bytes
  /// of DRAM.
  PageAllocator(Address bits, Address copies, std::uint64_t pages, Address sector)
      : bits_(bits), copies_(copies), pages_(pages), sector_(sector) {}
  [[nodiscard]] static std::uint64_t map_bytes(std::uint64_t pages) noexcept {
    return (pages + kBitsPerSector - 1) / kBitsPerSector * memory::kSectorBytes;
  }
  [[nodiscard]] static std::uint64_t copies_bytes(std::uint64_t pages) noexcept {
    return 2 * (memory::kSectorBytes + map_bytes(pages));
  }

  /// Ids in use, and the first id above all that ever were.
  [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
  [[nodiscard]] PageId next() const noexcept { return next_; }

  /// A released id where there is one. Throws CapacityError.
  template <memory::Memory M>
  [[nodiscard]] PageId take(M& memory) {
    if (used_ == next_)
      return take_next(memory);
    for (std::uint64_t word = hint_;; word = (word + 1) * 64 < next_ ? word + 1 : 0) {
      const auto bits = memory.template load<std::uint64_t>(at(word));
      const PageId id = word * 64 + static_cast<std::uint64_t>(std::countr_one(bits));
      if (bits != ~std::uint64_t{0} && id < next_) {
        hint_ = word;
        set(memory, id, true);
        return id;
      }
    }
  }
  /// The id above all others. Throws CapacityError.
  template <memory::Memory M>
  [[nodiscard]] PageId take_next(M& memory) {
    if (next_ == pages_)
      throw CapacityError("the home tier of the pages is full: it has room for " + std::to_string(pages_) +
                          " pages; make pmem_bytes or ssd_bytes larger");
    set(memory, next_, true);
    return next_ - 1;
  }
  template <memory::Memory M>
  [[nodiscard]] bool taken(M& memory, PageId id) const {
    return id < next_ && (memory.template load<std::uint64_t>(at(id / 64)) >> (id % 64) & 1) != 0;
  }
  /// Idempotent.
  template <memory::Memory M>
  void set(M& memory, PageId id, bool taken) {
    ensure(id < pages_, "a page id beyond the home tier");
    const auto bits = memory.template load<std::uint64_t>(at(id / 64));
    const std::uint64_t mask = std::uint64_t{1} << (id % 64);
    next_ = std::max(next_, id + 1);
    if (((bits & mask) != 0) == taken)
      return;
    memory.template store<std::uint64_t>(at(id / 64), bits ^ mask);
    changed_ = true;
    used_ += taken ? 1 : std::uint64_t{0} - 1;
    if (!taken)
      hint_ = std::min(hint_, id / 64);
  }

  /// What else has been sent to PMem before is durable on return as well: a checkpoint ends with it.
  template <memory::Memory M>
  void persist(M& memory) {
    if (!std::exchange(changed_, false)) {
      if (memory::medium_of(copies_) == memory::Medium::kPmem)
        memory.sfence(site::kMapEnd);
      return;
    }
    const Address copy = copies_ + (sequence_ + 1) % 2 * (memory::kSectorBytes + map_bytes(pages_));
    const std::uint64_t bytes = map_bytes(next_);
    std::array<std::uint64_t, 8> words{next_, used_, 0, 0, 0, 0, 0, ++sequence_};
    if (memory::medium_of(copies_) == memory::Medium::kBlock) {
      if (bytes != 0)
        memory.block_write(copy + memory::kSectorBytes, bits_, bytes);
      memory.block_flush(site::kMapBlocks);
      memory.write(sector_, std::as_bytes(std::span(words)));
      memory.block_write(copy, sector_, memory::kSectorBytes);
      memory.block_flush(site::kMapHead);
      return;
    }
    for (std::uint64_t byte = 0; byte < bytes; byte += memory::kLineBytes)
      blocks::page::copy_line(memory, copy + memory::kSectorBytes + byte, bits_ + byte,
                              blocks::page::Write::kStream, memory::kNoSite);
    memory.sfence(site::kMapFence);
    memory.write(copy, std::as_bytes(std::span(words).first(7)));
    memory.order(site::kMapOrder);
    memory.template store<std::uint64_t>(copy + 56, sequence_);
    memory.flush(copy, memory::kLineBytes, memory::FlushKind::kClwb, site::kMapFlush);
    memory.sfence(site::kMapEnd);
  }

  /// The map as of the last persist(); empty where there was none.
  template <memory::Memory M>
  void recover(M& memory) {
    std::array<std::uint64_t, 8> best{};
    Address from = 0;
    for (std::uint64_t index = 0; index < 2; ++index) {
      const Address copy = copies_ + index * (memory::kSectorBytes + map_bytes(pages_));
      std::array<std::uint64_t, 8> words{};
      Address head = copy;
      if (memory::medium_of(copies_) == memory::Medium::kBlock) {
        memory.block_read(copy, sector_, memory::kSectorBytes);
        head = sector_;
      }
      memory.read(head, std::as_writable_bytes(std::span(words)));
      if (words[7] > best[7]) {
        best = words;
        from = copy;
      }
    }
    next_ = best[0];
    used_ = best[1];
    sequence_ = best[7];
    hint_ = 0;
    if (next_ > pages_)
      throw ConfigError(
          "page_bytes, pmem_bytes, ssd_bytes: restart an engine with the options it was made with");
    const std::uint64_t bytes = map_bytes(next_);
    if (memory::medium_of(copies_) == memory::Medium::kBlock) {
      if (bytes != 0)
        memory.block_read(from + memory::kSectorBytes, bits_, bytes);
    } else {
      for (std::uint64_t byte = 0; byte < bytes; byte += memory::kLineBytes) {
        blocks::page::Line line;
        memory.read(from + memory::kSectorBytes + byte, line);
        memory.write(bits_ + byte, line);
      }
    }
    constexpr blocks::page::Line kZero{};
    for (std::uint64_t byte = bytes; byte < map_bytes(pages_); byte += memory::kLineBytes)
      memory.write(bits_ + byte, kZero);
  }

 private:
  static constexpr std::uint64_t kBitsPerSector = memory::kSectorBytes * 8;
  [[nodiscard]] Address at(std::uint64_t word) const noexcept { return bits_ + word * 8; }

  Address bits_ = 0;
  Address copies_ = 0;
  std::uint64_t pages_ = 0;
  Address sector_ = 0;
  std::uint64_t used_ = 0;
  PageId next_ = 0;
  bool changed_ = false;        ///< since the latest copy
  std::uint64_t hint_ = 0;      ///< no word before it has a free id below next_
  std::uint64_t sequence_ = 0;  ///< of the latest copy
};

}  // namespace pmsim::engines::buffer
