#pragma once

#include <cstdint>

#include "pmsim/core/error.hpp"
#include "pmsim/core/time.hpp"

namespace pmsim::machine {

__extension__ using WidePicoseconds = unsigned __int128;

/// A device that is as slow as its parameters may say comes to the end of virtual time. Below this, what it
/// adds next is still a time, too.
inline constexpr Picoseconds kLongestDeviceTime = kNever / 8;

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_device_time() {
  throw ConfigError(
      "block: the device works for more than 13 days of virtual time; choose higher bandwidths, shorter "
      "latencies or fewer operations");
}

/// Throws ConfigError where a block device would work for longer than virtual time lasts.
inline Picoseconds checked_device_time(WidePicoseconds time) {
  if (time > static_cast<WidePicoseconds>(kLongestDeviceTime)) [[unlikely]] {
    refuse_device_time();
  }
  return static_cast<Picoseconds>(time);
}

}  // namespace pmsim::machine
