#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pmsim/blocks/named_list.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/memory/memory.hpp"

/// Transaction logs on persistent memory (van Renen et al., "Building blocks for persistent memory",
/// section 3.3).
namespace pmsim::blocks::log {

using memory::Address;
using memory::kLineBytes;
using memory::Memory;
using memory::Site;

/// Log sequence number of an entry: its position in the endless stream of bytes that the log has taken since it
/// was created. It grows for ever, also over truncations, so no entry ever gets the number of an older one that
/// a reader might find in reused space; it also says where the entry lies (position modulo capacity) and in
/// which pass over the space it was written (position divided by capacity). The first pass is 1: no LSN is 0.
using Lsn = std::uint64_t;

/// How entries lie in lines, and how the line that two entries share gets to the medium.
enum class Layout : std::uint8_t {
  kNaive,     ///< dense; the shared line is stored to and flushed by both entries
  kPadded,    ///< every entry begins on a line of its own
  kDramTail,  ///< dense; the last line is kept in DRAM and streamed as a whole, so it is never loaded again
};

/// Where a log lives. The same place must be given to recover().
struct Place {
  Address base = 0;                ///< on a line; persistent memory that is all zero when the log is created
  std::uint64_t bytes = 0;         ///< file header and entries
  Address buffer = 0;              ///< Layout::kDramTail: on a line, volatile, contents arbitrary
  std::uint64_t buffer_bytes = 0;  ///< whole lines; holds the group that is not yet committed
};

struct Options {
  Layout layout = Layout::kPadded;
  /// Entries that are made durable together; append() commits when the group is full.
  std::uint32_t group_commit = 1;
  /// Header: size fields, each on a line, written in turn ("dancing", section 3.3.2). 1: plain Header.
  std::uint32_t fields = 1;
  /// Classic: secret of the file, drawn at random when it is created; see ClassicLog.
  std::uint64_t key = 0x6a09e667f3bcc909ULL;
  /// PopLog, RAWL: bytes behind the tail that recovery looks at, when the log is created. A larger group costs
  /// one barrier more when it first comes, and doubles it.
  std::uint64_t reach = std::uint64_t{64} << 10;
};

/// append() has no room for the entry. Nothing has been written; truncate() makes room.
class LogFull : public ConfigError {
 public:
  LogFull(std::uint64_t needed, std::uint64_t free, std::uint64_t capacity);
};

inline constexpr std::uint64_t kWord = memory::kAtomicBytes;

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}
[[nodiscard]] constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) noexcept {
  return value / unit * unit;
}

/// What precedes every payload: two words, {lsn} and {length, check}. The second is stored at once, so that a
/// length never lies in the medium without its check. PopLog keeps its bit count there (32 bits are enough for
/// entries below 512 MiB), the others leave it zero. All algorithms thereby have headers of the same size,
/// which is what Fig. 8 presupposes: RAWL, which needs one word more for its validity bits, is 8 bytes ahead.
struct EntryHeader {
  static constexpr std::uint64_t kBytes = 16;
  static constexpr std::uint64_t kMaxPayload = std::uint64_t{1} << 28;

  Lsn lsn = 0;
  std::uint32_t length = 0;
  std::uint32_t check = 0;

  [[nodiscard]] constexpr std::uint64_t second_word() const noexcept {
    return length | std::uint64_t{check} << 32;
  }
  [[nodiscard]] static constexpr EntryHeader of(std::uint64_t first, std::uint64_t second) noexcept {
    return {first, static_cast<std::uint32_t>(second), static_cast<std::uint32_t>(second >> 32)};
  }
};

/// Copying a payload with 64-byte vectors, besides the stores: per line a load, an addition, and
/// compare-and-branch.
inline constexpr std::uint32_t kCopyInstructionsPerLine = 3;

/// The instructions of a loop over words, counted in the compiled code (gcc 12, -O3 -march=skylake; compare and
/// branch fuse into one). In pieces, because the core's window holds only a few hundred at a time.
template <Memory M>
void count_instructions(M& memory, std::uint64_t payload_bytes, std::uint32_t per_word,
                        std::uint32_t per_line) {
  constexpr std::uint32_t kWordsOfLine = kLineBytes / kWord;
  std::uint64_t words = round_up(payload_bytes, kWord) / kWord;
  for (; words > kWordsOfLine; words -= kWordsOfLine)
    memory.compute(0, std::uint32_t{kWordsOfLine} * per_word + per_line);
  memory.compute(0, static_cast<std::uint32_t>(words) * per_word + per_line);
}

}  // namespace pmsim::blocks::log
