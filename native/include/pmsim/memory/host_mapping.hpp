#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace pmsim::memory {

/// A file descriptor that closes itself.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor();
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// Memory of the host behind one window: anonymous, or a file that is created or grown to the size.
class HostMapping {
 public:
  HostMapping() = default;
  /// With `large_pages` aligned to 2 MiB, and the system is asked to use pages of that size; it may not.
  [[nodiscard]] static HostMapping anonymous(std::uint64_t bytes, bool large_pages = false);
  /// MAP_SYNC where the file system offers it (DAX), otherwise an ordinary shared mapping and is_dax() false.
  /// The file is locked while it is mapped: a second mapping, in whatever process, is refused.
  [[nodiscard]] static HostMapping file(const std::string& path, std::uint64_t bytes);
  HostMapping(HostMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        dax_(other.dax_),
        file_(std::move(other.file_)) {}
  HostMapping& operator=(HostMapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(dax_, other.dax_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~HostMapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_; }
  [[nodiscard]] bool is_dax() const noexcept { return dax_; }

 private:
  HostMapping(std::byte* data, std::uint64_t bytes, bool dax, FileDescriptor file = {}) noexcept
      : data_(data), bytes_(bytes), dax_(dax), file_(std::move(file)) {}
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool dax_ = false;
  FileDescriptor file_;  ///< holds the lock
};

/// The file or device behind the block window.
class BlockFile {
 public:
  BlockFile() = default;
  BlockFile(const std::string& path, std::uint64_t bytes, bool direct);

  /// Each throws ConfigError naming the file when the transfer fails.
  void read(std::uint64_t offset, std::byte* into, std::size_t bytes) const;
  void write(std::uint64_t offset, const std::byte* from, std::size_t bytes) const;
  /// Pieces that lie one behind the other in the file, from `offset` on, by as few calls as possible.
  void write(std::uint64_t offset, std::span<const std::span<const std::byte>> pieces) const;
  void flush() const;

 private:
  std::string path_;
  FileDescriptor file_;
};

}  // namespace pmsim::memory
