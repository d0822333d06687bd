#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "pmsim/blocks/node/layout.hpp"
#include "pmsim/core/error.hpp"

namespace pmsim::blocks::node {

/// Which lines of few nodes an operation has changed, so that it can write each of them back once, and how many
/// bytes it has changed (the paper's "modified bytes": keys, values, counts, slots and hashes as they are, bits
/// of a bitmap eight to a byte).
class Changes {
 public:
  void note(Address address, std::uint32_t bytes) {
    bytes_ += bytes;
    mark(address, bytes);
  }
  /// Bits of a bitmap, in one word.
  void note_bits(Address word, std::uint32_t bits) {
    bits_ += bits;
    mark(word, kWordBytes);
  }

  /// Calls `line(address)` for every changed line, in the order of addresses within each node, and forgets
  /// them.
  template <typename Line>
  void take_lines(Line&& line) {
    for (std::uint32_t at = 0; at < areas_; ++at) {
      Area& area = area_[at];
      for (std::uint32_t word = 0; word < area.lines.size(); ++word) {
        for (; area.lines[word] != 0; area.lines[word] &= area.lines[word] - 1) {
          const auto bit = static_cast<std::uint32_t>(std::countr_zero(area.lines[word]));
          line(area.base + (word * 64 + bit) * memory::kLineBytes);
        }
      }
    }
    areas_ = 0;
  }

  /// Bytes changed since the last call.
  [[nodiscard]] std::uint64_t take_bytes() noexcept {
    return std::exchange(bytes_, 0) + (std::exchange(bits_, 0) + 7) / 8;
  }

 private:
  static constexpr Address kAreaBytes = 2 * kMostNodeBytes;

  struct Area {
    Address base;
    std::array<std::uint64_t, kAreaBytes / memory::kLineBytes / 64> lines;
  };

  void mark(Address address, std::uint32_t bytes) {
    for (Address line = address / memory::kLineBytes; line <= (address + bytes - 1) / memory::kLineBytes;
         ++line) {
      Area& area = area_of(line * memory::kLineBytes);
      const auto index = static_cast<std::uint32_t>(line - area.base / memory::kLineBytes);
      area.lines[index / 64] |= std::uint64_t{1} << index % 64;
    }
  }

  Area& area_of(Address line) {
    for (std::uint32_t at = 0; at < areas_; ++at) {
      if (area_[at].base == line / kAreaBytes * kAreaBytes)
        return area_[at];
    }
    ensure(areas_ < area_.size(), "an operation changes more nodes than are noted");
    area_[areas_] = {line / kAreaBytes * kAreaBytes, {}};
    return area_[areas_++];
  }

  std::array<Area, 8> area_{};  ///< three nodes and a neighbour's pointer, each in two areas at most
  std::uint32_t areas_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t bits_ = 0;
};

}  // namespace pmsim::blocks::node
