#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pmsim/core/host_room.hpp"

namespace pmsim::memory {

/// Throws HostMemoryError where the file system of temporary files has less left.
void require_temporary_space(std::uint64_t bytes);

/// Zeroed host memory that costs nothing until it is written: an anonymous mapping without reservation, in 4
/// KiB pages (huge pages are declined: one written byte would otherwise cost 2 MiB). The kernel's page table is
/// the page directory of the simulated memory, which makes an access one addition. A few pages are on the heap.
class MappedBytes {
 public:
  MappedBytes() = default;
  /// Throws ConfigError when the host refuses the address space.
  explicit MappedBytes(std::uint64_t bytes);
  /// The same in a sparse file without a name, in $TMPDIR or else /var/tmp: what is not in use leaves the
  /// host's memory for that file. For what is large and seldom touched, such as a simulated SSD. Throws
  /// ConfigError where no such file can be made.
  [[nodiscard]] static MappedBytes in_file(std::uint64_t bytes);
  MappedBytes(MappedBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        in_file_(other.in_file_),
        held_(other.held_),
        unchecked_(other.unchecked_) {}
  MappedBytes& operator=(MappedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(in_file_, other.in_file_);
    std::swap(held_, other.held_);
    std::swap(unchecked_, other.unchecked_);
    return *this;
  }
  ~MappedBytes();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_; }
  /// To be told of each access to bytes in a file: lets go of what this process holds of it whenever that may
  /// have become 64 MiB. The bytes stay in the file, and in its cache as long as the host has room.
  void accessed(std::uint64_t bytes) noexcept {
    if (in_file_ && (held_ += bytes) > kMostHeld) [[unlikely]]
      let_go();
  }
  /// To be told of bytes that are written for the first time. Throws HostMemoryError where the host's memory is
  /// nearly full, or the file system of the file, which would end the process by a signal.
  void taken(std::uint64_t bytes) {
    if (!in_file_) [[likely]]
      return HostMemoryWatch::taken(bytes);
    if ((unchecked_ += bytes) >= kDiskStride) [[unlikely]]
      check_disk();
  }
  [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }
  template <typename T>
  [[nodiscard]] T* as() const noexcept {
    return reinterpret_cast<T*>(data_);  // zeroed pages are valid objects of the integer types kept here
  }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool in_file_ = false;
  std::uint64_t held_ = 0;
  std::uint64_t unchecked_ = 0;  ///< taken since the last look at the file system

  static constexpr std::uint64_t kDiskStride = std::uint64_t{16} << 20;
  void check_disk();
  static constexpr std::uint64_t kMostHeld = std::uint64_t{64} << 20;
  void let_go() noexcept;
};

}  // namespace pmsim::memory
