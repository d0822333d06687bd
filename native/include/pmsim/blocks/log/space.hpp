#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "pmsim/blocks/log/types.hpp"

namespace pmsim::blocks::log {

/// A stretch of memory that an endless stream of bytes runs through in circles. Both ends lie on lines, so a
/// word or a line of the stream is never cut in two.
class Space {
 public:
  Space() = default;
  Space(Address base, std::uint64_t bytes) noexcept : base_(base), bytes_(bytes) {}

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Address at(Lsn position) const noexcept { return base_ + position % bytes_; }

  template <Memory M>
  [[nodiscard]] std::uint64_t word(M& memory, Lsn position) const {
    return memory.template load<std::uint64_t>(at(position));
  }
  template <Memory M>
  void put_word(M& memory, Lsn position, std::uint64_t value) const {
    memory.template store<std::uint64_t>(at(position), value);
  }
  /// Calls visit(address, offset, bytes) for each piece of [position, position + count) that lies in one run of
  /// addresses, in order: one, or two where the end of the stretch cuts it.
  template <typename Visit>
  void pieces(Lsn position, std::uint64_t count, Visit&& visit) const {
    const std::uint64_t offset = position % bytes_;
    const std::uint64_t first = std::min(count, bytes_ - offset);
    visit(base_ + offset, std::uint64_t{0}, first);
    if (first < count)
      visit(base_, first, count - first);
  }
  template <Memory M>
  void read(M& memory, Lsn position, std::span<std::byte> into) const {
    pieces(position, into.size(), [&](Address address, std::uint64_t offset, std::uint64_t bytes) {
      memory.read(address, into.subspan(offset, bytes));
    });
  }
  template <Memory M>
  void put(M& memory, Lsn position, std::span<const std::byte> from) const {
    pieces(position, from.size(), [&](Address address, std::uint64_t offset, std::uint64_t bytes) {
      memory.write(address, from.subspan(offset, bytes));
    });
  }
  template <Memory M>
  void flush(M& memory, Lsn position, std::uint64_t count, Site site) const {
    pieces(position, count, [&](Address address, std::uint64_t, std::uint64_t bytes) {
      memory.flush(address, bytes, memory::FlushKind::kClwb, site);
    });
  }

  /// Overwrites the words of [begin, end) that are not as free space has to be: `fresh(word, position)` gives
  /// what such a word must become, or nothing where it is right. Reads a line at a time, writes back those that
  /// it has changed, and returns whether there were any: they are not durable before the caller's fence.
  template <Memory M, typename Fresh>
  [[nodiscard]] bool freshen(M& memory, Lsn begin, Lsn end, Site flush_site, const Fresh& fresh) const {
    bool changed_any = false;
    for (Lsn first = begin, next; first < end; first = next) {
      const Lsn line = round_down(first, kLineBytes);
      next = line + kLineBytes;
      std::array<std::uint64_t, kLineBytes / kWord> words;
      const auto inside = std::span(words).first((std::min(next, end) - first) / kWord);
      read(memory, first, std::as_writable_bytes(inside));
      bool changed = false;
      for (Lsn at = first; const std::uint64_t word : inside) {
        if (const std::optional<std::uint64_t> right = fresh(word, at)) {
          put_word(memory, at, *right);
          changed = true;
        }
        at += kWord;
      }
      if (changed)
        flush(memory, line, kLineBytes, flush_site);
      changed_any = changed_any || changed;
    }
    return changed_any;
  }

  /// Words of the stream one after the other. Each address follows from the last one: no division for each.
  class Words {
   public:
    template <Memory M>
    void put(M& memory, std::uint64_t value) {
      memory.template store<std::uint64_t>(next_, value);
      next_ += kWord;
      if (next_ == end_) [[unlikely]]
        next_ = base_;
    }

   private:
    friend class Space;
    Words(Address base, Address end, Address next) noexcept : base_(base), end_(end), next_(next) {}
    Address base_;
    Address end_;
    Address next_;
  };
  [[nodiscard]] Words words(Lsn position) const noexcept { return Words(base_, base_ + bytes_, at(position)); }

 private:
  Address base_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Brings bytes of the stream to the medium in one of the three layouts. Not durable before write_back() and
/// the fence that the caller issues after it.
///
/// With Layout::kDramTail, bytes are put into a DRAM buffer and write_back() streams whole lines from it. The
/// rest of the last line goes along; the caller has filled it with what free space has to contain.
class Writer {
 public:
  Writer() = default;
  Writer(const Space& space, const Place& place, Layout layout)
      : space_(space), target_(space), buffered_(layout == Layout::kDramTail) {
    if (!buffered_)
      return;
    if (place.buffer == 0 || place.buffer_bytes < kLineBytes || place.buffer_bytes % kLineBytes != 0)
      throw ConfigError("log: layout dram-tail needs a DRAM buffer of whole lines");
    target_ = Space(place.buffer, place.buffer_bytes);
  }

  [[nodiscard]] bool buffered() const noexcept { return buffered_; }
  /// Bytes that may await write_back(); those of the line they begin in count too.
  [[nodiscard]] std::uint64_t limit() const noexcept { return target_.bytes(); }

  template <Memory M>
  void put_word(M& memory, Lsn position, std::uint64_t value) const {
    target_.put_word(memory, position, value);
  }
  [[nodiscard]] Space::Words words(Lsn position) const noexcept { return target_.words(position); }
  template <Memory M>
  void put(M& memory, Lsn position, std::span<const std::byte> from) const {
    target_.put(memory, position, from);
  }
  /// Puts bytes and fills the last word with zeros.
  template <Memory M>
  void put_padded(M& memory, Lsn position, std::span<const std::byte> from) const {
    const std::size_t whole = round_down(from.size(), kWord);
    target_.put(memory, position, from.first(whole));
    if (whole < from.size()) {
      std::uint64_t last = 0;
      std::memcpy(&last, from.data() + whole, from.size() - whole);
      target_.put_word(memory, position + whole, last);
    }
  }
  /// Gives the bytes of the last line behind `end` the value 0, where they travel along with it.
  template <Memory M>
  void zero_rest_of_line(M& memory, Lsn end) const {
    zero_buffered(memory, end, round_up(end, kLineBytes));
  }
  /// The same for [begin, end), bytes of one line before those that await write_back().
  template <Memory M>
  void zero_buffered(M& memory, Lsn begin, Lsn end) const {
    static constexpr std::array<std::byte, kLineBytes> kZeros{};
    if (buffered_)
      target_.put(memory, begin, std::span(kZeros).first(end - begin));
  }
  /// Sends [begin, end) on its way to the medium.
  template <Memory M>
  void write_back(M& memory, Lsn begin, Lsn end, Site flush) const {
    if (!buffered_)
      return space_.flush(memory, begin, end - begin, flush);
    const Lsn first = round_down(begin, kLineBytes);
    space_.pieces(first, end - first, [&](Address to, std::uint64_t offset, std::uint64_t bytes) {
      target_.pieces(first + offset, bytes, [&](Address from, std::uint64_t behind, std::uint64_t count) {
        for (std::uint64_t done = 0; done < count; done += kLineBytes) {
          std::array<std::byte, kLineBytes> line;
          memory.read(from + done, line);
          memory.stream(to + behind + done, line);
        }
      });
    });
  }
  /// Fetches the line of the tail into the buffer, after a restart.
  template <Memory M>
  void load_tail(M& memory, Lsn tail) const {
    if (!buffered_)
      return;
    std::array<std::byte, kLineBytes> line;
    space_.read(memory, round_down(tail, kLineBytes), line);
    target_.put(memory, round_down(tail, kLineBytes), line);
  }

 private:
  Space space_;   ///< persistent
  Space target_;  ///< where bytes are put: the same, or the buffer
  bool buffered_ = false;
};

}  // namespace pmsim::blocks::log
