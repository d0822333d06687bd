#pragma once

#include <array>

#include "pmsim/blocks/log/base.hpp"

namespace pmsim::blocks::log {

/// Classic (section 3.3.1): two persistency barriers for each group. First header and payload are made durable,
/// then the footer, which repeats the LSN.
///
///     entry = {lsn} {length} payload | {lsn ^ key}        padded: the footer begins on a line of its own
///
/// An entry counts when its header has the LSN of its place and its footer says the same. The first barrier is
/// what makes a durable footer prove that the payload is durable.
///
/// Reuse: nothing is cleared. LSNs never repeat, so no header or footer of an older pass fits. What could fit
/// by chance are bytes of an old payload that lie where a footer will be: with plain LSNs a user could even
/// write them on purpose, and a torn entry over them would be taken for whole. Therefore the footer is masked
/// with a key that is drawn at random when the log is created: an old word fits with probability 2^-64.
/// After a crash, an LSN *is* used again, by the append after the torn one. recover() clears the footers of a
/// torn group, which may be durable behind the entry without one, and which the next append could complete. It
/// waits for them: it finds them by the headers of the group, and the next append writes its own over the
/// first.
class ClassicLog : public LogBase<ClassicLog> {
 public:
  static constexpr std::array kNames{Named{"classic", "log with footers"}};
  static constexpr std::uint8_t kFormat = 1;
  static constexpr bool kTracksReach = false;
  static constexpr Site kEntryFlush = 120, kEntryFence = 121, kFooterFlush = 122, kFooterFence = 123;
  static constexpr Site kClearFlush = 124, kClearFence = 125;
  static constexpr std::array<SiteInfo, 6> kSites{{
      {kEntryFlush, "append: write header and payload back"},
      {kEntryFence, "append: wait for header and payload"},
      {kFooterFlush, "append: write the footer back"},
      {kFooterFence, "append: wait for the footer"},
      {kClearFlush, "recover: write the cleared footers of a torn group back"},
      {kClearFence, "recover: wait for the cleared footers of a torn group"},
  }};
  static constexpr std::array kCachedSites{kEntryFlush, kFooterFlush};

  [[nodiscard]] std::uint64_t footprint(std::uint64_t payload) const noexcept {
    return footer_offset(payload) + aligned(kWord);
  }

 private:
  friend class LogBase<ClassicLog>;
  ClassicLog(const Place& place, const Options& options) : LogBase(place, options) {}

  [[nodiscard]] std::uint64_t footer_offset(std::uint64_t payload) const noexcept {
    return aligned(EntryHeader::kBytes + payload);
  }
  [[nodiscard]] std::uint64_t footer_of(Lsn lsn) const noexcept { return lsn ^ options_.key; }

  template <Memory M>
  void write_entry(M& memory, Lsn at, std::span<const std::byte> payload) {
    const EntryHeader header{at, static_cast<std::uint32_t>(payload.size()), 0};
    count_instructions(memory, payload.size(), 0, kCopyInstructionsPerLine);
    writer_.put_word(memory, at, header.lsn);
    writer_.put_word(memory, at + kWord, header.second_word());
    writer_.put_padded(memory, at + EntryHeader::kBytes, payload);
    if (writer_.buffered())
      writer_.put_word(memory, at + footer_offset(payload.size()), 0);  // not what the buffer held a round ago
    footers_.push_back({at, at + footer_offset(payload.size())});
  }

  template <Memory M>
  void persist(M& memory, Lsn begin, Lsn end) {
    writer_.zero_rest_of_line(memory, end);
    // Not the lines that only a footer is on: a flush would throw them out of the cache before they are
    // written.
    Lsn written = round_down(begin, kLineBytes);
    for (const Footer& footer : footers_) {
      if (footer.place > written)
        writer_.write_back(memory, std::max(footer.lsn, written), footer.place, kEntryFlush);
      written = round_up(footer.place, kLineBytes);
    }
    memory.sfence(kEntryFence);
    for (const Footer& footer : footers_)
      writer_.put_word(memory, footer.place, footer_of(footer.lsn));
    for (std::size_t i = 0; i < footers_.size(); ++i) {
      const bool shared =
          i + 1 < footers_.size() && footers_[i].place / kLineBytes == footers_[i + 1].place / kLineBytes;
      if (!shared)
        writer_.write_back(memory, footers_[i].place, footers_[i].place + kWord, kFooterFlush);
    }
    memory.sfence(kFooterFence);
    footers_.clear();
  }

  /// End of the entry whose header is here, whatever its footer.
  template <Memory M>
  [[nodiscard]] std::optional<EntryHeader> read_header(M& memory, Lsn at, Lsn limit) const {
    if (limit - at < EntryHeader::kBytes)
      return std::nullopt;
    const EntryHeader header = EntryHeader::of(space_.word(memory, at), space_.word(memory, at + kWord));
    const bool fits =
        header.lsn == at && header.length <= EntryHeader::kMaxPayload && footprint(header.length) <= limit - at;
    return fits ? std::optional(header) : std::nullopt;
  }

  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read_entry(M& memory, Lsn at, Lsn limit, std::vector<std::byte>* out) const {
    const std::optional<EntryHeader> header = read_header(memory, at, limit);
    if (!header || space_.word(memory, at + footer_offset(header->length)) != footer_of(at))
      return std::nullopt;
    if (out != nullptr) {
      out->resize(header->length);
      space_.read(memory, at + EntryHeader::kBytes, *out);
    }
    return at + footprint(header->length);
  }

  /// A durable footer means that all headers of its group are durable, so following them finds every footer.
  template <Memory M>
  void clear_free_space(M& memory) const {
    bool wrote = false;
    Lsn at = tail_;
    while (const std::optional<EntryHeader> header = read_header(memory, at, head_ + space_.bytes())) {
      const Lsn footer = at + footer_offset(header->length);
      if (space_.word(memory, footer) == footer_of(at)) {
        space_.put_word(memory, footer, 0);
        space_.flush(memory, footer, kWord, kClearFlush);
        wrote = true;
      }
      at += footprint(header->length);
    }
    if (wrote)
      memory.sfence(kClearFence);
  }

  template <Memory M>
  void reuse(M&, Lsn, Lsn) const noexcept {}

  struct Footer {
    Lsn lsn;
    Lsn place;
  };
  std::vector<Footer> footers_;  ///< of the entries that await the commit
};

}  // namespace pmsim::blocks::log
