#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pmsim/blocks/inplace/chained_read.hpp"
#include "pmsim/blocks/inplace/record.hpp"
#include "pmsim/blocks/site.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim::blocks::inplace {

/// Copy-on-write inside the record: two copies and a flag that says which one counts (van Renen et al.,
/// Building blocks for persistent memory, VLDB Journal 29, 2020, sec. 3.4.1).
///
///     byte 0: active (1: a counts, 0: b)   byte 1..n: a   then b, n bytes
///
/// Records start at a line boundary. b starts behind a, or at the next line where it would otherwise touch more
/// lines than a does (n = 32: byte 64 instead of 33). The packed listing leaves the choice open: with it an
/// update of 32 bytes writes back 2 lines or 3 in turn, while Table 3 says 2. The gap lies in the padding up to
/// the next record and costs no space.
///
/// Durable when:
///  - The first barrier makes the copy durable that does not count; until then the record is as before.
///  - The flag, one byte, is old or new, and so is the record. update() returns behind the second barrier.
///  - Nothing to recover: the flag decides. Fresh zero bytes are a record of zeros.
///
/// Where flag and copy share a line (n up to 31) the cache line's own order would do for the first barrier,
/// since stores to one line become durable in program order; the algorithm does not rely on it.
class Cow {
 public:
  static constexpr std::array kNames{Named{"cow", "in-place updates by copy-on-write: two copies and a flag"}};
  static constexpr std::array<std::size_t, 3> kCheckedSizes{16, 32, 64};
  static constexpr memory::Site kCopyFlush = 500;
  static constexpr memory::Site kCopyFence = 501;
  static constexpr memory::Site kActiveFlush = 502;
  static constexpr memory::Site kActiveFence = 503;
  static constexpr std::array kSites{
      SiteInfo{kCopyFlush, "cow update: write the new copy back"},
      SiteInfo{kCopyFence, "cow update: barrier between copy and flag"},
      SiteInfo{kActiveFlush, "cow update: write the flag back"},
      SiteInfo{kActiveFence, "cow update: barrier after the flag"},
  };

  /// `bytes` of user data, a multiple of 8 up to 1024. Throws ConfigError for a bad size.
  explicit Cow(std::size_t bytes) : bytes_(bytes) {
    require_record_bytes(bytes);
    b_ = kCopyA + bytes;
    if (lines_of(b_) > lines_of(kCopyA))
      b_ = whole_lines(b_);
  }

  [[nodiscard]] std::size_t value_bytes() const noexcept { return bytes_; }
  /// Bytes that a record fills (Table 3: 2 n + 1).
  [[nodiscard]] std::size_t record_bytes() const noexcept { return 2 * bytes_ + 1; }
  /// From one record to the next: whole lines.
  [[nodiscard]] std::size_t stride() const noexcept { return whole_lines(b_ + bytes_); }

  template <memory::Memory M>
  void update(M& memory, memory::Address record, std::span<const std::byte> value) const {
    ensure(value.size() == bytes_ && record % memory::kLineBytes == 0, "a CoW record or value is misplaced");
    const auto active = memory.template load<std::uint8_t>(record);
    const memory::Address spare = record + copy_offset(active == 0);
    memory.compute(0, kUpdateInstructions);
    memory.write(spare, value);
    memory.flush(spare, bytes_, memory::FlushKind::kClwb, kCopyFlush);
    memory.sfence(kCopyFence);
    memory.template store<std::uint8_t>(record, active == 0 ? 1 : 0);
    memory.flush(record, 1, memory::FlushKind::kClwb, kActiveFlush);
    memory.sfence(kActiveFence);
  }

  template <memory::Memory M>
  void read(M& memory, memory::Address record, std::span<std::byte> into,
            Reads reads = Reads::kIndependent) const {
    ensure(into.size() == bytes_, "a CoW value has another size");
    const auto active = reads == Reads::kDependent ? memory.template load_dependent<std::uint8_t>(record)
                                                   : memory.template load<std::uint8_t>(record);
    memory.compute(0, kSelectInstructions);
    // The indirection that makes reads slower than from a plain record: the copy's address is in the flag.
    read_bytes(memory, record + copy_offset(active != 0), into, Reads::kDependent);
  }

  /// Gives a record that was never written one of its two copies, by the hash of its address: as a long history
  /// of updates would. For experiments. A record that was written has its value in the copy that counts, and no
  /// value of theirs is all zeros.
  template <memory::Memory M>
  void age(M& memory, memory::Address record) const {
    if ((mix64(record) & 1) == 0 || memory.template load<std::uint8_t>(record) != 0)
      return;
    std::array<std::byte, kMostBytes> buffer;
    const std::span<std::byte> value(buffer.data(), bytes_);
    read(memory, record, value);
    if (std::ranges::all_of(value, [](std::byte byte) { return byte == std::byte{0}; }))
      memory.template store<std::uint8_t>(record, 1);
  }

 private:
  static constexpr std::size_t kCopyA = 1;
  static constexpr std::uint32_t kSelectInstructions = 3;  ///< test, lea, cmov
  static constexpr std::uint32_t kUpdateInstructions = 4;  ///< test, lea, cmov; sete for the new flag

  [[nodiscard]] std::size_t copy_offset(bool a) const noexcept { return a ? kCopyA : b_; }
  [[nodiscard]] std::size_t lines_of(std::size_t offset) const noexcept {
    return (offset + bytes_ - 1) / memory::kLineBytes - offset / memory::kLineBytes + 1;
  }

  std::size_t bytes_;
  std::size_t b_;
};

}  // namespace pmsim::blocks::inplace
