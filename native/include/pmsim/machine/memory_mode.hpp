#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/core/scatter.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

/// What DRAM holds in memory mode: a direct-mapped cache of PMem, one line of 64 bytes a set. Tags only; who
/// reads and writes what is up to the memory system.
///
/// Lines are named by their place in the memory in use. The operating system gives a program its physical
/// memory in pieces of 4 MiB as it touches them, from anywhere, so that which lines share a set is a matter of
/// chance, and a program that uses less than DRAM has conflicts, too. Linux shuffles its free memory in such
/// pieces where it finds a direct-mapped memory-side cache (since 5.2; kernel parameter page_alloc.shuffle).
///
/// Invariant: a set holds one line that maps to it, or kNone.
class MemoryModeCache {
 public:
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0} >> 1;

  struct Held {
    std::uint64_t line;
    bool dirty;
  };

  /// `footprint`: lines in use, from 0 on. The cache begins as their long use leaves it: each set holds
  /// one of those that map to it, with equal chance, clean.
  MemoryModeCache(const PlatformParams& params, std::uint64_t footprint, std::uint64_t seed)
      : sets_(
            std::max<std::uint64_t>(1, static_cast<std::uint64_t>(params.dram.capacity) / memory::kLineBytes)),
        footprint_(footprint),
        pieces_(pieces(params, footprint)),
        placement_(pieces_, mix64(seed)),
        shares_(shares()) {}

  /// Which line in use an address of either memory is, `line` being that address in lines. It may be touched
  /// first now.
  [[nodiscard]] std::uint64_t in_use(std::uint64_t line) {
    const std::uint64_t address = line * memory::kLineBytes;
    std::vector<std::uint32_t>& pieces = used_[static_cast<std::size_t>(memory::medium_of(address))];
    const std::uint64_t piece = (address & (memory::kMediumBytes - 1)) / kPieceBytes;
    if (piece >= pieces.size())
      pieces.resize(piece + 1, kUnused);
    if (pieces[piece] == kUnused)
      pieces[piece] = pieces_in_use_++;
    return physical(pieces[piece], line);
  }

  [[nodiscard]] std::uint64_t set_of(std::uint64_t line) const noexcept {
    return physical(placement_(line / kPieceLines % pieces_), line) % sets_;
  }

  [[nodiscard]] Held held_in(std::uint64_t set) const {
    if (const auto found = changed_.find(set); found != changed_.end()) {
      return found->second;
    }
    std::uint64_t chosen = kNone;
    std::uint64_t candidates = 0;
    const auto look_at = [&](std::uint64_t line) {
      if (line < footprint_) {
        ++candidates;  // each of n is chosen in the end with a chance of 1/n
        chosen = mix64(set ^ candidates << 48) % candidates == 0 ? line : chosen;
      }
    };
    if (!shares_.empty()) {
      for (const std::uint64_t piece : shares_[set / kPieceLines])
        look_at(physical(piece, set));
      return Held{chosen, false};
    }
    // Whichever are fewer: the places that share the set, or the pieces in use.
    if (pieces_ * kPieceLines / sets_ < footprint_ / kPieceLines) {
      for (std::uint64_t place = set; place < pieces_ * kPieceLines; place += sets_)
        look_at(physical(placement_.inverse(place / kPieceLines), place));
      return Held{chosen, false};
    }
    for (std::uint64_t piece = 0; piece * kPieceLines < footprint_; ++piece) {
      const std::uint64_t begin = placement_(piece) * kPieceLines;
      const std::uint64_t first = begin + (set + sets_ - begin % sets_) % sets_;
      for (std::uint64_t place = first; place < begin + kPieceLines; place += sets_)
        look_at(physical(piece, place));
    }
    return Held{chosen, false};
  }

  void hold(std::uint64_t set, std::uint64_t line, bool dirty) { changed_[set] = Held{line, dirty}; }

 private:
  static constexpr std::uint64_t kPieceLines = kPieceBytes / memory::kLineBytes;
  static constexpr std::uint32_t kUnused = ~std::uint32_t{0};

  static std::uint64_t pieces(const PlatformParams& params, std::uint64_t footprint) {
    const std::uint64_t capacity = static_cast<std::uint64_t>(params.pmem.capacity) / memory::kLineBytes;
    return std::max<std::uint64_t>(1, (std::max(capacity, footprint) + kPieceLines - 1) / kPieceLines);
  }
  /// For every piece's worth of sets the pieces in use that map to it, in the order of their places; empty
  /// where DRAM is no whole number of pieces. Without it a set would look at each place of PMem that shares it,
  /// of which few are in use.
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> shares() const {
    if (sets_ % kPieceLines != 0)
      return {};
    const std::uint64_t shared_out = sets_ / kPieceLines;
    std::vector<std::uint64_t> places;
    for (std::uint64_t piece = 0; piece * kPieceLines < footprint_; ++piece)
      places.push_back(placement_(piece));
    std::ranges::sort(places);
    std::vector<std::vector<std::uint64_t>> found(shared_out);
    for (const std::uint64_t place : places)
      found[place % shared_out].push_back(placement_.inverse(place));
    return found;
  }
  /// The line of a piece that lies where `line` lies in its own.
  [[nodiscard]] static std::uint64_t physical(std::uint64_t piece, std::uint64_t line) noexcept {
    return piece * kPieceLines + line % kPieceLines;
  }

  std::uint64_t sets_;
  std::uint64_t footprint_;
  std::uint64_t pieces_;
  Scatter placement_;                               ///< pieces of the region to pieces of physical memory
  std::vector<std::vector<std::uint64_t>> shares_;  ///< see shares()
  std::array<std::vector<std::uint32_t>, 2> used_;  ///< by window and piece: which of those in use it is
  std::uint32_t pieces_in_use_ = 0;
  std::unordered_map<std::uint64_t, Held> changed_;  ///< sets whose content differs from the initial one
};

}  // namespace pmsim::machine
