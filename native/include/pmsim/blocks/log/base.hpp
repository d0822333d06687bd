#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pmsim/blocks/log/file_header.hpp"
#include "pmsim/blocks/log/space.hpp"
#include "pmsim/blocks/log/types.hpp"

namespace pmsim::blocks::log {

/// What all logs have in common. Keeps no reference to the memory: every method takes it.
///
///     file header | [size fields of Header] | circular space: ... free | head: entry entry ... tail | free ...
///
/// - append() puts an entry behind the tail and commits when the group is full. Its LSN is returned.
/// - commit() returns when every entry appended so far is DURABLE. An entry of an uncommitted group may or may
///   not survive; entries survive in order: whoever survives, so do all before it.
/// - truncate() returns when all entries are gone DURABLY and their space is free. A crash in it leaves all of
///   them or none. truncate_to() is the same for the oldest ones.
/// - recover() finds exactly the entries that count, and clears away what a torn append has left in free space,
///   so that no later append can be completed by old words (each algorithm says what that takes).
///
/// Where in free space recovery has to look. PopLog and RAWL rely on the state of every word of it, and reading
/// all of it would make a restart take time in proportion to the log's size. Two durable words bound it.
/// - `reach`: no group has ever been longer. What was not committed when the power failed lies between the
///   durable end at that time and `reach` bytes further, and recovery finds its tail at that end or behind it:
///   so torn words lie within `reach` of the tail. A longer group first raises it, durably (kTracksReach).
/// - `clean`: the head up to which passed space has been cleared, durably, for its next use. A crash in
///   truncate_to() leaves it behind the head, and what lies between them, one pass further, is not clear
///   (PopLog).
///
/// `Algorithm` supplies: kNames, kFormat, kTracksReach, kSites and of these kCachedSites (flushes that are not
/// executed where the tail is streamed), footprint(payload bytes), write_entry(), persist(),
/// read_entry() (the end of a valid entry, or nothing), clear_free_space() and reuse(); where it has several
/// names, options_of(name, options). Where free space has a rule, also fresh(word, position), whether a word of
/// it keeps that: the crash subject asks it of every word (AnyLog::fresh). Its place in the list is all.hpp.
template <typename Algorithm>
class LogBase {
 public:
  static constexpr bool kHasEntries = true;

  /// The points that a layout executes: with a tail in DRAM, entries are streamed, not flushed.
  [[nodiscard]] static std::vector<SiteInfo> sites(Layout layout) {
    std::vector<SiteInfo> all(FileHeader::kSites.begin(), FileHeader::kSites.end());
    if constexpr (Algorithm::kTracksReach)
      all.insert(all.end(), FileHeader::kReachSites.begin(), FileHeader::kReachSites.end());
    for (const SiteInfo& site : Algorithm::kSites) {
      if (layout != Layout::kDramTail ||
          std::ranges::find(Algorithm::kCachedSites, site.id) == std::ranges::end(Algorithm::kCachedSites))
        all.push_back(site);
    }
    return all;
  }

  /// Creates an empty log in zeroed memory; it is durable on return.
  template <Memory M>
  [[nodiscard]] static Algorithm create(M& memory, const Place& place, const Options& options) {
    Algorithm log(place, options);
    log.head_ = log.tail_ = log.durable_ = log.space_.bytes();  // pass 1 begins
    log.reach_ = std::clamp<std::uint64_t>(round_up(options.reach, kLineBytes), kLineBytes, log.space_.bytes());
    log.file_.create(memory, log.format(), options.key, log.head_, log.reach_);
    log.writer_.load_tail(memory, log.tail_);
    return log;
  }

  /// Opens what create() has made and a crash or an exit has left; nothing where create() had not finished.
  /// Recovery is idempotent: a crash in it changes nothing for the next one. Throws ConfigError where the place
  /// holds something else. `options` are those of create(), except group_commit; the key is read.
  template <Memory M>
  [[nodiscard]] static std::optional<Algorithm> recover(M& memory, const Place& place, Options options) {
    Algorithm log(place, options);
    if (!log.file_.check(memory, log.format()))
      return std::nullopt;
    log.options_.key = log.file_.key(memory);
    log.head_ = log.file_.head(memory);
    if (log.head_ < log.space_.bytes() || log.head_ % log.aligned(1) != 0)
      throw ConfigError("log: the file header is damaged: no entry begins at its head");
    log.reach_ = log.file_.reach(memory);
    if (log.reach_ == 0 || log.reach_ > log.space_.bytes())
      throw ConfigError("log: the file header is damaged: a group of " + std::to_string(log.reach_) +
                        " bytes does not fit into the log");
    log.tail_ = log.durable_ = log.find_tail(memory);
    log.clear_free_space(memory);
    log.writer_.load_tail(memory, log.tail_);
    return log;
  }

  /// Throws LogFull where the entry does not fit; nothing has been written then.
  template <Memory M>
  Lsn append(M& memory, std::span<const std::byte> payload) {
    const std::uint64_t bytes = self().footprint(payload.size());
    check_room(payload.size(), bytes);
    if constexpr (Algorithm::kTracksReach) {
      if (tail_ + bytes - durable_ > reach_) [[unlikely]]
        raise_reach(memory, tail_ + bytes - durable_);
    }
    const Lsn lsn = tail_;
    self().write_entry(memory, lsn, payload);
    tail_ += bytes;
    if (++pending_ == options_.group_commit)
      commit(memory);
    return lsn;
  }

  template <Memory M>
  void commit(M& memory) {
    if (tail_ == durable_)
      return;
    self().persist(memory, durable_, tail_);
    durable_ = tail_;
    pending_ = 0;
  }

  template <Memory M>
  void truncate(M& memory) {
    commit(memory);
    truncate_to(memory, tail_);
  }
  /// The same for the entries before `end`, which is the LSN of a committed entry or their end.
  template <Memory M>
  void truncate_to(M& memory, Lsn end) {
    ensure(head_ <= end && end <= durable_, "log: a truncation beyond the committed entries");
    if (head_ == end)
      return;
    file_.move_head(memory, end);
    self().reuse(memory, std::exchange(head_, end), end);
  }

  /// The payload of the committed entry at `at`, and the LSN behind it; nothing where there is none.
  template <Memory M>
  [[nodiscard]] std::optional<Lsn> read(M& memory, Lsn at, std::vector<std::byte>& payload) const {
    return at < durable_ ? self().read_entry(memory, at, durable_, &payload) : std::nullopt;
  }
  /// Calls visit(lsn, payload) for every committed entry, oldest first; the payload is valid during the call.
  template <Memory M, typename Visit>
  void for_each(M& memory, Visit&& visit) const {
    std::vector<std::byte> payload;
    Lsn at = head_;
    while (const std::optional<Lsn> end = read(memory, at, payload)) {
      visit(at, std::span<const std::byte>(payload));
      at = *end;
    }
  }

  [[nodiscard]] Lsn head() const noexcept { return head_; }
  [[nodiscard]] Lsn tail() const noexcept { return tail_; }
  /// Everything before this LSN is durable.
  [[nodiscard]] Lsn durable() const noexcept { return durable_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return space_.bytes(); }
  /// Bytes that entries may take now. Streaming writes whole lines: it must not reach the line of the oldest
  /// entry from behind.
  [[nodiscard]] std::uint64_t free() const noexcept {
    const std::uint64_t unit = writer_.buffered() ? kLineBytes : kWord;
    const Lsn end = round_down(head_, unit) + space_.bytes();
    return end > tail_ ? end - tail_ : 0;
  }
  /// Whether an entry with so many bytes of payload fits now.
  [[nodiscard]] bool fits(std::size_t payload) const noexcept {
    return payload <= EntryHeader::kMaxPayload && self().footprint(payload) <= free();
  }

 protected:
  LogBase(const Place& place, const Options& options, std::uint64_t extra_header = 0)
      : file_(place.base), options_(options) {
    const std::uint64_t before = FileHeader::kBytes + extra_header;
    if (place.base % kLineBytes != 0 || place.bytes < before + 2 * kLineBytes)
      throw ConfigError("log_size: a place of " + std::to_string(place.bytes) +
                        " bytes is too small or not on a line; at least " +
                        std::to_string(before + 2 * kLineBytes) + " are needed");
    if (options.group_commit == 0)
      throw ConfigError("log: group_commit must be at least 1");
    space_ = Space(place.base + before, round_down(place.bytes - before, kLineBytes));
    writer_ = Writer(space_, place, options.layout);
  }

  [[nodiscard]] bool padded() const noexcept { return options_.layout == Layout::kPadded; }
  /// Bytes up to the next place where something may begin.
  [[nodiscard]] std::uint64_t aligned(std::uint64_t bytes) const noexcept {
    return round_up(bytes, padded() ? kLineBytes : kWord);
  }

  // What an algorithm without work to do inherits.
  template <Memory M>
  [[nodiscard]] Lsn find_tail(M& memory) const {
    return self().scan(memory);
  }
  /// Walks over valid entries from the head on.
  template <Memory M>
  [[nodiscard]] Lsn scan(M& memory) const {
    Lsn at = head_;
    while (const std::optional<Lsn> end = self().read_entry(memory, at, head_ + space_.bytes(), nullptr))
      at = *end;
    return at;
  }

  /// Freshens (Space::freshen) each stretch of free space in which a crash may have left something.
  template <Memory M, typename Fresh>
  [[nodiscard]] bool clear_suspects(M& memory, Lsn clean, Site flush_site, const Fresh& fresh) const {
    const Lsn limit = head_ + space_.bytes();
    const Lsn torn = std::min(tail_ + reach_, limit);
    const bool changed = space_.freshen(memory, tail_, torn, flush_site, fresh);
    const Lsn passed = std::max(torn, clean + space_.bytes());
    return space_.freshen(memory, passed, limit, flush_site, fresh) || changed;
  }

  FileHeader file_;
  Options options_;
  Space space_;
  Writer writer_;
  Lsn head_ = 0;
  Lsn tail_ = 0;
  Lsn durable_ = 0;
  std::uint64_t reach_ = 0;
  std::uint32_t pending_ = 0;

 private:
  [[nodiscard]] const Algorithm& self() const noexcept { return static_cast<const Algorithm&>(*this); }
  [[nodiscard]] Algorithm& self() noexcept { return static_cast<Algorithm&>(*this); }

  [[nodiscard]] std::uint64_t format() const noexcept {
    return std::uint64_t{0x706d'6c6f} << 32 | std::uint64_t{Algorithm::kFormat} << 24 |
           static_cast<std::uint64_t>(options_.layout) << 16 | options_.fields;
  }
  template <Memory M>
  void raise_reach(M& memory, std::uint64_t needed) {
    while (reach_ < needed)
      reach_ *= 2;
    reach_ = std::min(reach_, space_.bytes());
    file_.raise_reach(memory, reach_);
  }
  void check_room(std::uint64_t payload, std::uint64_t bytes) const {
    if (payload > EntryHeader::kMaxPayload)
      throw ConfigError("log: an entry of " + std::to_string(payload) +
                        " bytes is too large; the limit is 256 MiB");
    if (bytes > free())
      throw LogFull(bytes, free(), space_.bytes());
    if (writer_.buffered() && tail_ + bytes - round_down(durable_, kLineBytes) > writer_.limit())
      throw ConfigError("log: the group needs " +
                        std::to_string(tail_ + bytes - round_down(durable_, kLineBytes)) +
                        " bytes of DRAM buffer, there are " + std::to_string(writer_.limit()) +
                        "; choose a larger buffer, a smaller group_commit or smaller entries");
  }
};

}  // namespace pmsim::blocks::log
