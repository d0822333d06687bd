#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pmsim {

/// Memory of the machine that simulates, which is none of the simulated memories.
struct HostRoom {
  std::uint64_t total = 0;      ///< what processes may use: of the machine, or of their control group
  std::uint64_t available = 0;  ///< that could still be taken without swapping

  /// Kept free, for what is taken between two looks, by this process and by others that simulate.
  [[nodiscard]] std::uint64_t reserve() const noexcept;
  [[nodiscard]] bool holds(std::uint64_t more) const noexcept {
    return available > reserve() && available - reserve() >= more;
  }
};

/// What the host has now; nothing where it does not say (no Linux). `root`: of the file system, for tests.
/// Throws ConfigError when the variable PMSIM_HOST_MEMORY of the environment is no size.
[[nodiscard]] std::optional<HostRoom> host_room(const std::string& root = "");

/// Throws HostMemoryError where the host cannot hold so many bytes more. A process that takes more than there
/// is is killed by the kernel, with nothing said and all its points lost.
void require_host_memory(std::uint64_t more = 0);

/// Where memory is taken piece by piece: looks whenever another kStride of it has been.
class HostMemoryWatch {
 public:
  /// Four thousand page faults and some milliseconds at least; a look takes some 50 us.
  static constexpr std::uint64_t kStride = std::uint64_t{16} << 20;

  /// To be called with each piece. Throws HostMemoryError.
  static void taken(std::uint64_t bytes) {
    since_ += bytes;
    if (since_ >= kStride) [[unlikely]]
      look();
  }

 private:
  static void look();

  static thread_local std::uint64_t since_;
};

}  // namespace pmsim
