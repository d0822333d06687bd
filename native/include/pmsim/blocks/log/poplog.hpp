#pragma once

#include <array>
#include <bit>

#include "pmsim/blocks/log/base.hpp"
#include "pmsim/core/count_bits.hpp"

namespace pmsim::blocks::log {

/// PopLog (section 3.3.1): one persistency barrier for each group. The entry carries the number of its set
/// bits; free space is zero.
///
///     entry = {lsn} {length | count << 32} payload
///
/// Why a torn entry is never taken for a whole one: free space is zero, durably, before anything is put there,
/// so a word that has not reached the medium is zero in it. A missing word can only lower the number of bits
/// found, never raise it, whichever words are missing: lines evicted early, lines that are not yet there, the
/// prefix of a line. Hence the recount equals `count` only if every word with a set bit is there, and words
/// without one look the same either way. Length and count are one word, so the recount covers the right bytes.
///
/// The entry of zeros: count 0 means "never written", and the paper's entry without header bits would have it.
/// Here the LSN is part of what is counted and is never 0, so every entry has count >= 1: an all-zero payload,
/// also an empty one, is a valid entry. (The paper leaves this open; claims: poplog-zero-count.)
///
/// Reuse costs a second write of the space: truncate() moves the head and then zeroes what it has passed,
/// durably, before it returns. A crash between the two leaves whole entries of the earlier generation in free
/// space, right behind the tail if the log was full: the LSN tells them apart, which is why it is compared with
/// the place. recover() zeroes them, and whatever a torn append has left behind the tail, before anything can
/// be appended. It looks at no other free space (LogBase: `reach`, `clean`).
class PopLog : public LogBase<PopLog> {
 public:
  static constexpr std::array kNames{Named{"poplog", "log with bit counts"}};
  static constexpr std::uint8_t kFormat = 4;
  static constexpr bool kTracksReach = true;
  static constexpr Site kEntryFlush = 180, kEntryFence = 181, kZeroFence = 182;
  static constexpr Site kClearFlush = 183, kClearFence = 184;
  static constexpr std::array<SiteInfo, 6> kSites{{
      {kEntryFlush, "append: write header, count and payload back"},
      {kEntryFence, "append: wait for header, count and payload"},
      {kZeroFence, "truncate: wait for the zeros"},
      {kClearFlush, "recover: write the zeros over a torn entry back"},
      {kClearFence, "recover: wait for the zeros over a torn entry"},
      FileHeader::kCleanFlush,
  }};
  static constexpr std::array kCachedSites{kEntryFlush};
  /// Counting bits, per word of payload: popcnt with a memory operand, two additions, compare-and-branch.
  static constexpr std::uint32_t kInstructionsPerWord = 4;

  [[nodiscard]] std::uint64_t footprint(std::uint64_t payload) const noexcept {
    return aligned(EntryHeader::kBytes + payload);
  }
  /// Whether a word of free space is as it has to be.
  [[nodiscard]] bool fresh(std::uint64_t word, Lsn) const noexcept { return word == 0; }

 private:
  friend class LogBase<PopLog>;
  PopLog(const Place& place, const Options& options) : LogBase(place, options) {}

  [[nodiscard]] static std::uint32_t bits(const EntryHeader& header) noexcept {
    return static_cast<std::uint32_t>(std::popcount(header.lsn) + std::popcount(header.length));
  }

  template <Memory M>
  void write_entry(M& memory, Lsn at, std::span<const std::byte> payload) const {
    EntryHeader header{at, static_cast<std::uint32_t>(payload.size()), 0};
    header.check = bits(header) + count_bits(payload);
    count_instructions(memory, payload.size(), kInstructionsPerWord, kCopyInstructionsPerLine);
    writer_.put_word(memory, at, header.lsn);
    writer_.put_word(memory, at + kWord, header.second_word());
    writer_.put_padded(memory, at + EntryHeader::kBytes, payload);
  }

  template <Memory M>
  void persist(M& memory, Lsn begin, Lsn end) const {
    writer_.zero_rest_of_line(memory, end);
    writer_.write_back(memory, begin, end, kEntryFlush);
    memory.sfence(kEntryFence);
  }

  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read_entry(M& memory, Lsn at, Lsn limit, std::vector<std::byte>* out) const {
    if (limit - at < EntryHeader::kBytes)
      return std::nullopt;
    const EntryHeader header = EntryHeader::of(space_.word(memory, at), space_.word(memory, at + kWord));
    if (header.check == 0 || header.lsn != at || header.length > EntryHeader::kMaxPayload ||
        footprint(header.length) > limit - at)
      return std::nullopt;
    std::vector<std::byte> local;
    std::vector<std::byte>& payload = out != nullptr ? *out : local;
    payload.resize(header.length);
    space_.read(memory, at + EntryHeader::kBytes, payload);
    if (header.check != bits(header) + count_bits(payload))
      return std::nullopt;
    return at + footprint(header.length);
  }

  /// All free space is zero afterwards. What is already zero is not written.
  template <Memory M>
  void clear_free_space(M& memory) const {
    const Lsn clean = file_.clean(memory);
    const auto zero = [this](std::uint64_t word, Lsn at) {
      return fresh(word, at) ? std::nullopt : std::optional<std::uint64_t>(0);
    };
    if (this->clear_suspects(memory, clean, kClearFlush, zero))
      memory.sfence(kClearFence);
    if (clean != head_)
      file_.mark_clean(memory, head_);
  }

  /// The head has passed [begin, end). Where it has reached the tail everything is free, so whole lines can be
  /// zeroed. Else the last line is that of the oldest entry, too, and the first one may be that of the newest,
  /// which has come round to it.
  template <Memory M>
  void reuse(M& memory, Lsn begin, Lsn end) const {
    static constexpr std::array<std::byte, kLineBytes> kZeros{};
    const Lsn line = round_down(begin, kLineBytes);
    const bool all = end == tail_;
    const Lsn last = all ? std::min(round_up(end, kLineBytes), line + space_.bytes()) : end;
    for (Lsn at = all ? line : begin; at < last;) {
      const Lsn next = std::min(round_down(at, kLineBytes) + kLineBytes, last);
      memory.stream(space_.at(at), std::span(kZeros).first(next - at));
      at = next;
    }
    memory.sfence(kZeroFence);
    file_.mark_clean(memory, end);
    // The line that is streamed next: what has been passed in it must not come back from the buffer.
    if (end == tail_)
      writer_.load_tail(memory, end);
    else if (const Lsn next = std::max(begin, round_down(durable_, kLineBytes)); next < end)
      writer_.zero_buffered(memory, next, end);
  }
};

}  // namespace pmsim::blocks::log
