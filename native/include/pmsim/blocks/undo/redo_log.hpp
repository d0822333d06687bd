#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "pmsim/blocks/site.hpp"
#include "pmsim/blocks/undo/checksum.hpp"
#include "pmsim/blocks/undo/types.hpp"

namespace pmsim::blocks::undo {

/// The redo log of a transaction's metadata (lane.h, `external`): words to be set and bits to be changed, all
/// of them or none. It holds what a commit publishes: bits of allocated and freed objects, and the generation
/// that makes the undo log's entries old.
///
///     line 0: checksum, capacity | 40 entries of {operation and target, value}; the first zero ends them
///
/// process() (operation_process):
///  - One word needs no log: it is stored, flushed and fenced, and 8 bytes are atomic.
///  - Several: header and entries are streamed with a checksum over both, fence (ulog_store); each is applied
///  and
///    flushed, fence (ulog_process); the header is streamed over with zeros, fence (ulog_clobber).
/// Recovery applies a log whose checksum holds, any number of times: entries set bits, they do not count.
///
/// A header that a crash has torn goes, too. PMDK leaves it (ulog_recover): where the words of a header that
/// are lost are the same in each log (its capacity), the next store can be torn so that it brings just these,
/// and an old log is whole again, with the bits of a transaction that was rolled back and a generation that has
/// passed. The crash checker came upon it; it takes two crashes, and a line that reaches the medium in parts.
class RedoLog {
 public:
  static constexpr std::uint64_t kMostEntries = 40;  ///< 640 bytes, LANE_REDO_EXTERNAL_SIZE
  struct Entry {
    std::uint64_t target;  ///< target_word()
    std::uint64_t value;
  };
  static constexpr std::uint64_t kBytes = kLineBytes + kMostEntries * sizeof(Entry);

  static constexpr Site kWordFlush = 907, kWordFence = 908;
  static constexpr Site kStoreFence = 930, kApplyFlush = 931, kApplyFence = 932, kClobberFence = 933;
  static constexpr Site kRecoverFlush = 934, kRecoverFence = 935, kRecoverClobberFence = 936;
  /// Where a commit changes one word.
  static constexpr std::array kWordSites{
      SiteInfo{kWordFlush, "commit: write the only word back"},
      SiteInfo{kWordFence, "commit: wait for the only word"},
  };
  /// Where it changes several.
  static constexpr std::array kLogSites{
      SiteInfo{kStoreFence, "commit: wait for the redo log before its words change"},
      SiteInfo{kApplyFlush, "commit: write the changed words back"},
      SiteInfo{kApplyFence, "commit: wait for the changed words before the redo log goes"},
      SiteInfo{kClobberFence, "commit: wait until the redo log is gone",
               "applying it once more changes nothing before the next commit, and that begins with a fence"},
      SiteInfo{kRecoverFlush, "recovery: write the words of the redo log back"},
      SiteInfo{kRecoverFence, "recovery: wait for the words before the redo log goes"},
      SiteInfo{kRecoverClobberFence, "recovery: wait until the redo log is gone",
               "applying it once more changes nothing before the next commit, and that begins with a fence"},
  };

  explicit RedoLog(Address base) noexcept : base_(base) {}

  /// A word that the next process() changes. Bits of one word become one entry (operation_try_merge_entry).
  void add(Operation operation, Address target, std::uint64_t value) {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      if (target_of(entry->target) != target)
        continue;
      if (operation_of(entry->target) != operation)
        break;
      entry->value = combine(operation, entry->value, value);
      return;
    }
    ensure(entries_.size() < kMostEntries, "a redo log was filled without asking for room");
    entries_.push_back({target_word(operation, target), value});
  }
  void clear() noexcept { entries_.clear(); }

  /// Durable on return: all changes.
  template <Memory M>
  void process(M& memory) {
    if (entries_.size() == 1) {
      apply(memory, entries_.front(), kWordFlush);
      memory.sfence(kWordFence);
    } else if (!entries_.empty()) {
      store(memory);
      memory.sfence(kStoreFence);
      for (const Entry& entry : entries_)
        apply(memory, entry, kApplyFlush);
      memory.sfence(kApplyFence);
      clobber(memory);
      memory.sfence(kClobberFence);
    }
    entries_.clear();
  }

  /// Completes a commit that was cut short (ulog_recover). Idempotent.
  template <Memory M>
  void recover(M& memory) const {
    Image image{};
    memory.read(base_, image);
    std::uint64_t checksum;
    std::memcpy(&checksum, image.data(), sizeof checksum);
    std::vector<Entry> found;
    for (std::size_t at = kLineBytes; at < kBytes; at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, &image[at], sizeof entry);
      if (entry.target == 0)
        break;
      found.push_back(entry);
    }
    if (std::ranges::all_of(std::span(image).first(kLineBytes),
                            [](std::byte byte) { return byte == std::byte{0}; }))
      return;
    const auto log = std::span<std::byte>(image).first(bytes_of(found.size()));
    if (!found.empty() && checksum == checksum_of(memory, log)) {
      for (const Entry& entry : found)
        apply(memory, entry, kRecoverFlush);
      memory.sfence(kRecoverFence);
    }
    clobber(memory);
    memory.sfence(kRecoverClobberFence);
  }

 private:
  using Image = std::array<std::byte, kBytes>;

  [[nodiscard]] static constexpr std::uint64_t combine(Operation operation, std::uint64_t word,
                                                       std::uint64_t value) noexcept {
    return operation == Operation::kAnd ? word & value : operation == Operation::kOr ? word | value : value;
  }
  [[nodiscard]] static constexpr std::uint64_t bytes_of(std::uint64_t entries) noexcept {
    return kLineBytes + entries * sizeof(Entry);
  }

  /// Over header and entries, the checksum itself counting as zero.
  template <Memory M>
  [[nodiscard]] static std::uint64_t checksum_of(M& memory, std::span<std::byte> log) {
    memory.compute(0, static_cast<std::uint32_t>((log.size() + kLineBytes - 1) / kLineBytes) *
                          kFletcherInstructionsPerLine);
    std::memset(log.data(), 0, sizeof(std::uint64_t));
    return entry_checksum(log);
  }

  /// The entry behind the last one is zeroed, so that none of an earlier log follows.
  template <Memory M>
  void store(M& memory) const {
    Image image{};
    std::memcpy(&image[kCapacityAt], &kCapacity, sizeof kCapacity);
    std::memcpy(&image[kLineBytes], entries_.data(), entries_.size() * sizeof(Entry));
    const std::uint64_t used = bytes_of(entries_.size());
    const std::uint64_t checksum = checksum_of(memory, std::span<std::byte>(image).first(used));
    std::memcpy(image.data(), &checksum, sizeof checksum);
    const std::uint64_t with_end = (used + sizeof(std::uint64_t) + kLineBytes - 1) / kLineBytes * kLineBytes;
    memory.stream(base_, std::span<const std::byte>(image).first(std::min(with_end, kBytes)));
  }
  template <Memory M>
  void clobber(M& memory) const {
    static constexpr std::array<std::byte, kLineBytes> kZeros{};
    memory.stream(base_, kZeros);
  }
  template <Memory M>
  static void apply(M& memory, const Entry& entry, Site flush) {
    const Address target = target_of(entry.target);
    const Operation operation = operation_of(entry.target);
    const std::uint64_t word = operation == Operation::kSet ? 0 : memory.template load<std::uint64_t>(target);
    memory.template store<std::uint64_t>(target, combine(operation, word, entry.value));
    memory.flush(target, sizeof word, memory::FlushKind::kClwb, flush);
  }

  static constexpr std::uint64_t kCapacity = kMostEntries * sizeof(Entry);
  static constexpr std::size_t kCapacityAt = 16;

  Address base_;
  std::vector<Entry> entries_;
};

}  // namespace pmsim::blocks::undo
