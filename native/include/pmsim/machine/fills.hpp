#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/timed_op.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

/// The last lines that something has been noted of: when they arrive, and from which level. Of what is long
/// past nothing is known any more.
template <std::size_t kPlaces, std::size_t kLines>
class RecentLines {
 public:
  struct Note {
    Picoseconds arrives;
    std::uint8_t from;
  };
  void put(std::uint64_t line, Note note) noexcept {
    places_[place_of(line)].put(line, note);
    empty_ = false;
  }
  void forget(std::uint64_t line) noexcept {
    if (!empty_)
      places_[place_of(line)].forget(line);
  }
  /// `otherwise`: where nothing is known of it.
  [[nodiscard]] Note find(std::uint64_t line, Note otherwise) const noexcept {
    return empty_ ? otherwise : places_[place_of(line)].find(line, otherwise);
  }

 private:
  /// Lines in order have a place each; where a piece of memory begins among them is as good as random, so that
  /// streams which run through equal parts of their regions hardly meet.
  [[nodiscard]] static std::size_t place_of(std::uint64_t line) noexcept {
    return static_cast<std::size_t>(line + ((line / kPlaces) * 0x9e3779b97f4a7c15U >> 57)) % kPlaces;
  }

  /// Lines that share a place, latest first. Several, since threads of a core, or streams of one, that run at
  /// one distance meet in each place.
  class alignas(memory::kLineBytes) Place {
   public:
    void put(std::uint64_t line, Note note) noexcept {
      std::shift_right(lines_.begin(), lines_.end(), 1);
      std::shift_right(arrives_.begin(), arrives_.end(), 1);
      lines_.front() = line | std::uint64_t{note.from} << kLineBits;
      arrives_.front() = note.arrives;
    }
    void forget(std::uint64_t line) noexcept {
      if (const std::size_t at = index_of(line); at != kLines)
        lines_[at] = kNone;
    }
    [[nodiscard]] Note find(std::uint64_t line, Note otherwise) const noexcept {
      const std::size_t at = index_of(line);
      return at == kLines ? otherwise : Note{arrives_[at], static_cast<std::uint8_t>(lines_[at] >> kLineBits)};
    }

   private:
    static constexpr int kLineBits = 58;  ///< of 64 B each: above them is where a line comes from
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    [[nodiscard]] static constexpr std::array<std::uint64_t, kLines> none() noexcept {
      std::array<std::uint64_t, kLines> lines{};
      lines.fill(kNone);
      return lines;
    }
    [[nodiscard]] std::size_t index_of(std::uint64_t line) const noexcept {
      std::size_t at = 0;
      while (at != kLines && (lines_[at] ^ line) << (64 - kLineBits) != 0) {
        ++at;
      }
      return at;
    }

    std::array<std::uint64_t, kLines> lines_ = none();
    std::array<Picoseconds, kLines> arrives_{};
  };
  std::array<Place, kPlaces> places_{};
  bool empty_ = true;  ///< as where no prefetcher is at work, or no core asks another
};

/// What a platform's time has made of lines that the tags of caches, which know of no time, take for arrived.
/// Dropped prefetches stay apart from what has come: a line that nobody remembers to be dropped would be there
/// though nobody has fetched it.
template <std::size_t kPlaces>
class Fills {
 public:
  void note(std::uint64_t line, Picoseconds arrives, std::uint8_t from) noexcept {
    coming_.put(line, {arrives, from});
    dropped_.forget(line);
  }
  /// A prefetch that was to bring the line has not: it still is at the level `from`.
  void note_dropped(std::uint64_t line, std::uint8_t from) noexcept {
    dropped_.forget(line);
    dropped_.put(line, {0, from});
  }

  /// When the line arrives or has arrived; 0 where that is long past.
  [[nodiscard]] Picoseconds arrival(std::uint64_t line) const noexcept {
    return coming_.find(line, {0, kFromMemory}).arrives;
  }
  /// The level that it comes from, or has come.
  [[nodiscard]] std::uint8_t source(std::uint64_t line) const noexcept {
    return coming_.find(line, {0, kFromMemory}).from;
  }
  /// Where a line is that is at `level`, if its prefetch has not been dropped.
  [[nodiscard]] std::uint8_t level_of(std::uint64_t line, std::uint8_t level) const noexcept {
    return dropped_.find(line, {0, level}).from;
  }
  [[nodiscard]] bool is_dropped(std::uint64_t line) const noexcept { return level_of(line, kL1) != kL1; }

 private:
  RecentLines<kPlaces, 4> coming_;
  RecentLines<kPlaces, 8> dropped_;
};

/// Those of all cores of a lane that can be given each other's lines.
using LaneFills = Fills<1024>;

}  // namespace pmsim::machine
