#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "pmsim/blocks/inplace/record.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::inplace {

/// The log of log-based in-place updates: PopLog entries (van Renen et al., Building blocks for persistent
/// memory, VLDB Journal 29, 2020, sec. 3.3 and 3.4.2) that carry their target, padded to cache lines.
///
///     word 0: length of the value (low half), population count of length, address and value (high half)
///     word 1: address of the record that the value belongs to
///     words 2..: the value
///
/// The paper's entry holds the new bytes alone; one log serves all records, so recovery could not know where
/// they belong. With the address 64 bytes take two lines, as Table 3 says.
///
/// Validity: the log is zeroed before use, so a word that is missing can only lower the count: an entry counts
/// exactly when all its words do. An entry is never all zero bits, because its length is not zero.
///
/// Durable when:
///  - append() returns: the entry, all of it, behind its barrier. Before that it is invalid or complete.
///  - clear() first makes the log empty with one word (the first header, behind a barrier of its own), then
///  zeroes the
///    rest. Zeroed in any other order, an early entry could survive a later one and be replayed over newer
///    data. It returns when all of it is zero, so that nothing old stands behind a later entry.
///
/// The object holds the tail only; recover the log with last() and clear() after a restart.
class RedoLog {
 public:
  static constexpr memory::Site kEntryFlush = 520;
  static constexpr memory::Site kEntryFence = 521;
  static constexpr memory::Site kEmptyFlush = 522;
  static constexpr memory::Site kEmptyFence = 523;
  static constexpr memory::Site kZeroFence = 524;
  static constexpr std::array kSites{
      SiteInfo{kEntryFlush, "log append: write the entry back"},
      SiteInfo{kEntryFence, "log append: the persistency barrier"},
      SiteInfo{kEmptyFlush, "log clear: write the first header back"},
      SiteInfo{kEmptyFence, "log clear: barrier between emptying and zeroing"},
      SiteInfo{kZeroFence, "log clear: barrier before the log is used again"},
  };

  struct Entry {
    memory::Address target = 0;
    std::size_t bytes = 0;  ///< 0: there is none
    std::array<std::byte, kMostBytes> value;
  };

  /// A log in [base, base + bytes), whole lines of zeros. Throws ConfigError where not even one entry of
  /// `value_bytes` fits.
  RedoLog(memory::Address base, std::uint64_t bytes, std::size_t value_bytes) : base_(base), bytes_(bytes) {
    if (base % memory::kLineBytes != 0 || bytes % memory::kLineBytes != 0 || bytes < entry_bytes(value_bytes)) {
      throw ConfigError("log of " + std::to_string(bytes) +
                        " bytes: must be whole cache lines and hold at least one " + "entry of " +
                        std::to_string(entry_bytes(value_bytes)) + " bytes");
    }
  }

  /// Bytes of the log that an entry for a value takes.
  [[nodiscard]] static constexpr std::size_t entry_bytes(std::size_t value_bytes) noexcept {
    return whole_lines(kHeadBytes + value_bytes);
  }
  [[nodiscard]] bool has_room(std::size_t value_bytes) const noexcept {
    return entry_bytes(value_bytes) <= bytes_ - tail_;
  }

  /// The value's size is a multiple of 8, and has_room() for it.
  template <memory::Memory M>
  void append(M& memory, memory::Address target, std::span<const std::byte> value) {
    ensure(has_room(value.size()), "the redo log is full");
    std::array<std::uint64_t, kWords> words;
    const std::size_t count = kHeadWords + value.size() / sizeof(std::uint64_t);
    words[1] = target;
    std::memcpy(&words[kHeadWords], value.data(), value.size());
    words[0] = header(value.size(), {&words[1], count - 1});
    memory.compute(0, kFixedInstructions + kWordInstructions * static_cast<std::uint32_t>(count - 1));
    memory.write(base_ + tail_, std::as_bytes(std::span(words.data(), count)));
    memory.flush(base_ + tail_, count * sizeof(std::uint64_t), memory::FlushKind::kClwb, kEntryFlush);
    memory.sfence(kEntryFence);
    tail_ += entry_bytes(value.size());
  }

  /// The last of the valid entries from the start of the log on; bytes = 0 where there is none.
  template <memory::Memory M>
  [[nodiscard]] Entry last(M& memory) const {
    Entry entry;
    for (std::uint64_t at = 0; at < bytes_;) {
      const auto head = memory.template load<std::uint64_t>(base_ + at);
      const std::size_t length = head & 0xffff'ffff;
      if (length == 0 || length > kMostBytes || length % memory::kAtomicBytes != 0 ||
          entry_bytes(length) > bytes_ - at)
        break;
      std::array<std::uint64_t, kWords> words;
      const std::size_t count = kHeadWords + length / sizeof(std::uint64_t);
      memory.read(base_ + at, std::as_writable_bytes(std::span(words.data(), count)));
      if (words[0] != header(length, {&words[1], count - 1}))
        break;
      entry.target = words[1];
      entry.bytes = length;
      std::memcpy(entry.value.data(), &words[kHeadWords], length);
      at += entry_bytes(length);
    }
    return entry;
  }

  /// Empties the log up to its tail. What the entries describe must be durable where it belongs.
  template <memory::Memory M>
  void clear(M& memory) {
    zero(memory, tail_);
    tail_ = 0;
  }

  /// Empties the log after a restart: its tail is not known, and a clear() may have been cut short.
  template <memory::Memory M>
  void clear_all(M& memory) {
    zero(memory, bytes_);
    tail_ = 0;
  }

 private:
  static constexpr std::size_t kHeadWords = 2;
  static constexpr std::size_t kHeadBytes = kHeadWords * sizeof(std::uint64_t);
  static constexpr std::size_t kWords = kHeadWords + kMostBytes / sizeof(std::uint64_t);
  /// Counted in the compiled loop: per word load, popcnt, add, store; and what makes a header and advances the
  /// tail.
  static constexpr std::uint32_t kWordInstructions = 4;
  static constexpr std::uint32_t kFixedInstructions = 8;

  [[nodiscard]] static std::uint64_t header(std::size_t length, std::span<const std::uint64_t> words) noexcept {
    auto count = static_cast<std::uint64_t>(std::popcount(length));
    for (const std::uint64_t word : words)
      count += static_cast<std::uint64_t>(std::popcount(word));
    return count << 32 | length;
  }

  template <memory::Memory M>
  void zero(M& memory, std::uint64_t bytes) {
    if (bytes == 0)
      return;
    memory.template store<std::uint64_t>(base_, 0);
    memory.flush(base_, sizeof(std::uint64_t), memory::FlushKind::kClwb, kEmptyFlush);
    memory.sfence(kEmptyFence);
    for (std::uint64_t at = 0; at < bytes; at += memory::kLineBytes) {
      std::array<std::byte, memory::kLineBytes> line;
      memory.read(base_ + at, line);
      if (std::ranges::any_of(line, [](std::byte byte) { return byte != std::byte{0}; })) {
        line.fill(std::byte{0});
        memory.stream(base_ + at, line);
      }
    }
    memory.sfence(kZeroFence);
  }

  memory::Address base_;
  std::uint64_t bytes_;
  std::uint64_t tail_ = 0;
};

}  // namespace pmsim::blocks::inplace
