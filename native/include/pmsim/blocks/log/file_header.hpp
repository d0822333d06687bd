#pragma once

#include <array>
#include <string>

#include "pmsim/blocks/log/types.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::log {

/// The first line of every log: {format, key, head}. `head` is the LSN of the oldest entry that counts.
///
/// Durable when create() returns: all three. The format word is the last store to the line, so a crash during
/// create() leaves either no log (format 0) or a whole, empty one.
/// Durable when move_head() returns: the new head. It is one word: a crash leaves the old or the new one, and
/// so truncation is atomic whatever the length of the log.
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

  FileHeader() = default;
  explicit FileHeader(Address base) noexcept : base_(base) {}

  template <Memory M>
  void create(M& memory, std::uint64_t format, std::uint64_t key, Lsn head) const {
    memory.template store<std::uint64_t>(base_ + kKey, key);
    memory.template store<std::uint64_t>(base_ + kHead, head);
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

 private:
  static constexpr std::uint64_t kKey = 8, kHead = 16;

  Address base_ = 0;
};

}  // namespace pmsim::blocks::log
