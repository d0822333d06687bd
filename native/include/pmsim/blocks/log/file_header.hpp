#pragma once

#include <array>
#include <string>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::log {

/// The first line of every log: {format, key, head, reach, clean}. `head` is the LSN of the oldest entry that
/// counts. `reach` and `clean` bound what recovery has to look at in free space (LogBase says how).
///
/// Durable when create() returns: all of them. The format word is the last store to the line, so a crash during
/// create() leaves either no log (format 0) or a whole, empty one.
/// Durable when move_head() returns: the new head. It is one word: a crash leaves the old or the new one, and
/// so truncation is atomic whatever the length of the log.
/// Durable when raise_reach() returns: the new reach.
/// mark_clean() promises nothing: where it is lost, the next recovery looks at more than it must.
class FileHeader {
 public:
  static constexpr std::uint64_t kBytes = kLineBytes;
  static constexpr Site kFormatOrder = 100, kFormatFlush = 101, kFormatFence = 102;
  static constexpr Site kHeadFlush = 103, kHeadFence = 104;
  static constexpr std::array<SiteInfo, 5> kSites{{
      {kFormatOrder, "create: key and head before the format word of the same line"},
      {kFormatFlush, "create: write the file header back"},
      {kFormatFence, "create: wait for the file header"},
      {kHeadFlush, "truncate: write the new head back"},
      {kHeadFence, "truncate: wait for the new head"},
  }};
  /// Of the logs that clear free space.
  static constexpr Site kReachFlush = 105, kReachFence = 106;
  static constexpr std::array<SiteInfo, 2> kReachSites{{
      {kReachFlush, "append: write the reach of a larger group back"},
      {kReachFence, "append: wait for the reach before anything of the larger group"},
  }};
  /// Of the log that keeps it zero.
  static constexpr SiteInfo kCleanFlush{107, "zero: write back up to where free space is zero",
                                        "where it is lost, the next recovery looks at more than it must"};

  FileHeader() = default;
  explicit FileHeader(Address base) noexcept : base_(base) {}

  template <Memory M>
  void create(M& memory, std::uint64_t format, std::uint64_t key, Lsn head, std::uint64_t reach) const {
    memory.template store<std::uint64_t>(base_ + kKey, key);
    memory.template store<std::uint64_t>(base_ + kHead, head);
    memory.template store<std::uint64_t>(base_ + kReach, reach);
    memory.template store<std::uint64_t>(base_ + kClean, head);
    memory.order(kFormatOrder);
    memory.template store<std::uint64_t>(base_, format);
    memory.flush(base_, kBytes, memory::FlushKind::kClwb, kFormatFlush);
    memory.sfence(kFormatFence);
  }

  /// For logs with neither key nor head.
  template <Memory M>
  void create(M& memory, std::uint64_t format) const {
    memory.template store<std::uint64_t>(base_, format);
    memory.flush(base_, kBytes, memory::FlushKind::kClwb, kFormatFlush);
    memory.sfence(kFormatFence);
  }

  template <Memory M>
  void move_head(M& memory, Lsn head) const {
    memory.template store<std::uint64_t>(base_ + kHead, head);
    memory.flush(base_ + kHead, kWord, memory::FlushKind::kClwb, kHeadFlush);
    memory.sfence(kHeadFence);
  }

  template <Memory M>
  void raise_reach(M& memory, std::uint64_t reach) const {
    memory.template store<std::uint64_t>(base_ + kReach, reach);
    memory.flush(base_ + kReach, kWord, memory::FlushKind::kClwb, kReachFlush);
    memory.sfence(kReachFence);
  }

  /// Durable at some time after the caller's fence before it, which covers what it says of free space.
  template <Memory M>
  void mark_clean(M& memory, Lsn head) const {
    memory.template store<std::uint64_t>(base_ + kClean, head);
    memory.flush(base_ + kClean, kWord, memory::FlushKind::kClwb, kCleanFlush.id);
  }

  /// Whether a log of this format is here; false where none was ever completed.
  /// Throws ConfigError where there is something else.
  template <Memory M>
  [[nodiscard]] bool check(M& memory, std::uint64_t format) const {
    const auto found = memory.template load<std::uint64_t>(base_);
    if (found != format && found != 0)
      throw ConfigError("log: the place holds something else than a log of this algorithm and layout");
    return found == format;
  }
  template <Memory M>
  [[nodiscard]] std::uint64_t key(M& memory) const {
    return memory.template load<std::uint64_t>(base_ + kKey);
  }
  template <Memory M>
  [[nodiscard]] Lsn head(M& memory) const {
    return memory.template load<std::uint64_t>(base_ + kHead);
  }
  template <Memory M>
  [[nodiscard]] std::uint64_t reach(M& memory) const {
    return memory.template load<std::uint64_t>(base_ + kReach);
  }
  template <Memory M>
  [[nodiscard]] Lsn clean(M& memory) const {
    return memory.template load<std::uint64_t>(base_ + kClean);
  }

 private:
  static constexpr std::uint64_t kKey = 8, kHead = 16, kReach = 24, kClean = 32;

  Address base_ = 0;
};

}  // namespace pmsim::blocks::log
