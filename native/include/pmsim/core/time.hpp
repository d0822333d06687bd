#pragma once

#include <cstdint>
#include <limits>

namespace pmsim {

/// Virtual time and durations: whole picoseconds (2^63 ps are 106 days).
using Picoseconds = std::int64_t;

/// A sum of durations: the requests of a long queue wait for longer than 106 days together.
__extension__ using PicosecondSum = __int128;

inline constexpr Picoseconds kNanosecond = 1'000;
inline constexpr Picoseconds kSecond = 1'000'000'000'000;
/// A time that never comes: the key of a thread that waits for somebody else's event.
inline constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();

}  // namespace pmsim
