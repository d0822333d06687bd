#pragma once

#include <array>

#include "pmsim/blocks/log/base.hpp"

namespace pmsim::blocks::log {

/// Header, as libpmemlog does it (section 3.3.1): two persistency barriers for each group. First the entries
/// are made durable, then the size of the log in its header, one word.
///
///     entry = {lsn} {length} payload
///
/// Everything before the size counts, nothing behind it is looked at: torn entries and stale bytes never
/// matter, reuse needs nothing, recovery reads no entry.
///
/// The size field is on one line, which every append persists again. With `fields` = N there are N of them on
/// lines of their own, written in turn ("dancing size fields", section 3.3.2; 64 in the paper). The size is
/// the LSN of the tail, which only grows, also when the log is truncated: so the largest field is the latest.
class HeaderLog : public LogBase<HeaderLog> {
 public:
  static constexpr std::array kNames{Named{"header", "log with a size field"},
                                     Named{"header-dancing", "log with dancing size fields"}};
  static constexpr std::uint8_t kFormat = 2;
  static constexpr bool kTracksReach = false;
  static constexpr Site kEntryFlush = 140, kEntryFence = 141, kSizeFlush = 142, kSizeFence = 143;
  static constexpr std::array<SiteInfo, 4> kSites{{
      {kEntryFlush, "append: write header and payload back"},
      {kEntryFence, "append: wait for header and payload"},
      {kSizeFlush, "append: write the size back"},
      {kSizeFence, "append: wait for the size"},
  }};
  static constexpr std::array kCachedSites{kEntryFlush, kSizeFlush};
  static constexpr std::uint32_t kMaxFields = 4096;

  [[nodiscard]] static Options options_of(std::string_view name, Options options) {
    if (name == "header")
      options.fields = 1;
    return options;
  }

  [[nodiscard]] std::uint64_t footprint(std::uint64_t payload) const noexcept {
    return aligned(EntryHeader::kBytes + payload);
  }

 private:
  friend class LogBase<HeaderLog>;
  HeaderLog(const Place& place, const Options& options)
      : LogBase(place, options, checked(options.fields) * kLineBytes),
        fields_(place.base + FileHeader::kBytes) {}

  [[nodiscard]] static std::uint64_t checked(std::uint32_t fields) {
    if (fields == 0 || fields > kMaxFields)
      throw ConfigError("log: " + std::to_string(fields) + " size fields; choose 1 to " +
                        std::to_string(kMaxFields));
    return fields;
  }

  template <Memory M>
  void write_entry(M& memory, Lsn at, std::span<const std::byte> payload) const {
    const EntryHeader header{at, static_cast<std::uint32_t>(payload.size()), 0};
    count_instructions(memory, payload.size(), 0, kCopyInstructionsPerLine);
    writer_.put_word(memory, at, header.lsn);
    writer_.put_word(memory, at + kWord, header.second_word());
    writer_.put_padded(memory, at + EntryHeader::kBytes, payload);
  }

  template <Memory M>
  void persist(M& memory, Lsn begin, Lsn end) {
    writer_.zero_rest_of_line(memory, end);
    writer_.write_back(memory, begin, end, kEntryFlush);
    memory.sfence(kEntryFence);
    const Address field = fields_ + next_ * kLineBytes;
    next_ = next_ + 1 == options_.fields ? 0 : next_ + 1;
    if (writer_.buffered()) {
      // The line of the size is shared by all entries: it is streamed too.
      const std::array<std::uint64_t, kLineBytes / kWord> line{end};
      memory.stream(field, std::as_bytes(std::span(line)));
    } else {
      memory.template store<std::uint64_t>(field, end);
      memory.flush(field, kWord, memory::FlushKind::kClwb, kSizeFlush);
    }
    memory.sfence(kSizeFence);
  }

  /// The size is what says it, not the entries.
  template <Memory M>
  [[nodiscard]] Lsn find_tail(M& memory) {
    Lsn tail = head_;  // fields are 0 until they are first used
    next_ = 0;
    for (std::uint32_t i = 0; i < options_.fields; ++i) {
      const auto size = memory.template load<std::uint64_t>(fields_ + i * kLineBytes);
      if (size > tail) {
        tail = size;
        next_ = i + 1 == options_.fields ? 0 : i + 1;
      }
    }
    // Of the other logs the entries say where they end; here nothing else would notice.
    if (tail - head_ > space_.bytes() || tail % aligned(1) != 0)
      throw ConfigError("log: a size field is damaged: entries from " + std::to_string(head_) + " to " +
                        std::to_string(tail) + " do not fit into the log");
    return tail;
  }

  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read_entry(M& memory, Lsn at, Lsn limit, std::vector<std::byte>* out) const {
    const EntryHeader header = EntryHeader::of(space_.word(memory, at), space_.word(memory, at + kWord));
    if (header.lsn != at || header.length > EntryHeader::kMaxPayload || footprint(header.length) > limit - at)
      return std::nullopt;
    if (out != nullptr) {
      out->resize(header.length);
      space_.read(memory, at + EntryHeader::kBytes, *out);
    }
    return at + footprint(header.length);
  }

  template <Memory M>
  void clear_free_space(M&) const noexcept {}
  template <Memory M>
  void reuse(M&, Lsn, Lsn) const noexcept {}

  Address fields_;
  std::uint32_t next_ = 0;  ///< field that the next commit writes
};

}  // namespace pmsim::blocks::log
