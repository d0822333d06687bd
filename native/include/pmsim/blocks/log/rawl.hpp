#pragma once

#include <array>
#include <cstring>

#include "pmsim/blocks/log/base.hpp"

namespace pmsim::blocks::log {

/// RAWL, the raw word log of Mnemosyne (section 3.3.1): one persistency barrier for each group. Every word
/// carries a validity bit and 63 bits of data.
///
///     entry = {1|lsn} {1|length} {1|63 bits of payload}...    the 1 is a 0 in every second pass
///
/// Why a torn entry is never taken for a whole one: the validity bit of the current pass over the space (LSN
/// divided by capacity, odd: 1) differs in every word of free space, durably, before anything is put there:
/// zeros before the first pass, the words of the previous pass later. So every word tells by itself whether it
/// has been written. An entry counts when all its words do, those of its padding included: they too must have
/// been written before the next pass can rely on them.
///
/// Reuse is free: truncate() moves the head, nothing is cleared. After a crash, recover() turns the bits of
/// whatever words a torn append has left behind the tail.
class RawlLog : public LogBase<RawlLog> {
 public:
  static constexpr std::array kNames{Named{"rawl", "log with a validity bit per word"}};
  static constexpr std::uint8_t kFormat = 3;
  static constexpr bool kTracksReach = true;
  static constexpr Site kEntryFlush = 160, kEntryFence = 161;
  static constexpr Site kClearFlush = 162, kClearFence = 163;
  static constexpr std::array<SiteInfo, 4> kSites{{
      {kEntryFlush, "append: write all words of the entry back"},
      {kEntryFence, "append: wait for all words of the entry"},
      {kClearFlush, "recover: write the turned bits of a torn entry back"},
      {kClearFence, "recover: wait for the turned bits of a torn entry"},
  }};
  static constexpr std::array kCachedSites{kEntryFlush};
  static constexpr unsigned kDataBits = 63;
  /// Per word of payload, besides the store: load, two shifts, two ors, and, subtraction, two moves, two
  /// increments, an address, and two compare-and-branches.
  static constexpr std::uint32_t kInstructionsPerWord = 14;

  /// Words that `payload` bytes take: ceil(8 n / 63) for whole words of payload.
  [[nodiscard]] static constexpr std::uint64_t payload_words(std::uint64_t payload) noexcept {
    return (8 * round_up(payload, kWord) + kDataBits - 1) / kDataBits;
  }
  [[nodiscard]] std::uint64_t footprint(std::uint64_t payload) const noexcept {
    return aligned(EntryHeader::kBytes + payload_words(payload) * kWord);
  }
  /// Whether a word of free space is as it has to be.
  [[nodiscard]] bool fresh(std::uint64_t word, Lsn at) const noexcept { return !valid(word, at); }

 private:
  friend class LogBase<RawlLog>;
  RawlLog(const Place& place, const Options& options) : LogBase(place, options) {}

  static constexpr std::uint64_t kData = (std::uint64_t{1} << kDataBits) - 1;

  [[nodiscard]] std::uint64_t validity(Lsn at) const noexcept { return at / space_.bytes() << kDataBits; }
  [[nodiscard]] bool valid(std::uint64_t word, Lsn at) const noexcept {
    return ((word ^ validity(at)) >> kDataBits) == 0;
  }

  /// The word there, filled with zeros behind the payload's end.
  [[nodiscard]] static std::uint64_t word_of(std::span<const std::byte> payload, std::size_t at) noexcept {
    std::uint64_t word = 0;
    if (payload.size() - at >= kWord) [[likely]]
      std::memcpy(&word, payload.data() + at, kWord);  // one load: its size is known
    else
      std::memcpy(&word, payload.data() + at, payload.size() - at);
    return word;
  }

  template <Memory M>
  void write_entry(M& memory, Lsn at, std::span<const std::byte> payload) const {
    const Lsn end = at + footprint(payload.size());
    const Lsn pass_end = at - at % space_.bytes() + space_.bytes();
    std::uint64_t bit = validity(at);
    Space::Words words = writer_.words(at);
    const auto put = [&](std::uint64_t data) {
      if (at == pass_end) [[unlikely]]
        bit = validity(at);
      words.put(memory, data | bit);
      at += kWord;
    };
    put(at);
    put(payload.size());
    std::uint64_t carry = 0;
    unsigned bits = 0;  // in carry, below 63
    for (std::size_t done = 0; done < payload.size(); done += kWord) {
      if (done % kLineBytes == 0)
        count_instructions(memory, std::min<std::uint64_t>(kLineBytes, payload.size() - done),
                           kInstructionsPerWord, 0);
      const std::uint64_t word = word_of(payload, done);
      put((carry | word << bits) & kData);
      carry = word >> (kDataBits - bits);
      if (++bits == kDataBits) {
        put(carry);
        carry = 0;
        bits = 0;
      }
    }
    if (bits > 0)
      put(carry);
    while (at < end)
      put(0);
  }

  template <Memory M>
  void persist(M& memory, Lsn begin, Lsn end) const {
    if (writer_.buffered()) {
      // What travels along in the last line must stay invalid in this pass.
      Space::Words words = writer_.words(end);
      const std::uint64_t invalid = validity(end) ^ ~kData;  // a line is of one pass
      for (Lsn at = end; at % kLineBytes != 0; at += kWord)
        words.put(memory, invalid);
    }
    writer_.write_back(memory, begin, end, kEntryFlush);
    memory.sfence(kEntryFence);
  }

  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read_entry(M& memory, Lsn at, Lsn limit, std::vector<std::byte>* out) const {
    if (limit - at < EntryHeader::kBytes)
      return std::nullopt;
    const std::uint64_t first = space_.word(memory, at);
    const std::uint64_t second = space_.word(memory, at + kWord);
    if (!valid(first, at) || !valid(second, at + kWord))
      return std::nullopt;
    const std::uint64_t length = second & kData;
    if (length > EntryHeader::kMaxPayload || footprint(length) > limit - at)
      return std::nullopt;
    const Lsn end = at + footprint(length);
    if (out != nullptr)
      out->assign(length, std::byte{});
    std::uint64_t carry = 0;
    unsigned bits = 0;  // in carry
    std::size_t done = 0;
    for (at += EntryHeader::kBytes; at < end; at += kWord) {
      const std::uint64_t word = space_.word(memory, at);
      if (!valid(word, at))
        return std::nullopt;
      if (out == nullptr || done >= length)
        continue;
      const std::uint64_t data = word & kData;
      const std::uint64_t whole = carry | data << bits;
      if (bits == 0) {
        carry = data;
        bits = kDataBits;
        continue;
      }
      std::memcpy(out->data() + done, &whole, std::min<std::size_t>(kWord, length - done));
      done += kWord;
      carry = data >> (64 - bits);
      bits -= 1;
    }
    return end;
  }

  /// No word of free space looks valid afterwards. What is as it should be is not written.
  template <Memory M>
  void clear_free_space(M& memory) const {
    const auto turn = [this](std::uint64_t word, Lsn at) {
      return fresh(word, at) ? std::nullopt : std::optional(validity(at) ^ ~kData);
    };
    if (this->clear_suspects(memory, head_, kClearFlush, turn))  // passed space is as it should be
      memory.sfence(kClearFence);
  }

  template <Memory M>
  void reuse(M&, Lsn, Lsn) const noexcept {}
};

}  // namespace pmsim::blocks::log
