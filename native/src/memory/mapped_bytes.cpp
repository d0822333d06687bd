#include "pmsim/memory/mapped_bytes.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "pmsim/core/error.hpp"

namespace pmsim::memory {

namespace {

/// Left to others on the file system of temporary files.
constexpr std::uint64_t kFreeOnDisk = std::uint64_t{256} << 20;

/// What is no larger comes from the heap: to map, to fault in and to unmap a few pages takes the kernel longer
/// than it takes to zero them, and a crash state has several such regions.
constexpr std::uint64_t kMostOnHeap = std::uint64_t{32} << 10;

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/var/tmp";
}

}  // namespace

MappedBytes::MappedBytes(std::uint64_t bytes) : bytes_(bytes) {
  if (bytes == 0)
    return;
  if (bytes <= kMostOnHeap) {
    data_ = static_cast<std::byte*>(std::calloc(bytes, 1));
    if (data_ == nullptr)
      throw std::bad_alloc();
    return;
  }
  void* mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw ConfigError("the host refuses " + std::to_string(bytes) + " bytes of address space (" +
                      std::strerror(errno) +
                      "); use smaller regions, raise `ulimit -v`, or a region whose contents do not matter");
  }
#ifdef MADV_NOHUGEPAGE
  ::madvise(mapped, bytes, MADV_NOHUGEPAGE);  // advice only: kernels without huge pages refuse it and need none
#endif
  data_ = static_cast<std::byte*>(mapped);
}

MappedBytes MappedBytes::in_file(std::uint64_t bytes) {
  if (bytes == 0)
    return {};
  std::string path = temporary_folder() + "/pmsim-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  void* mapped = MAP_FAILED;
  if (file >= 0) {
    ::unlink(path.c_str());  // it lives as long as its mapping
    if (::ftruncate(file, static_cast<off_t>(bytes)) == 0)
      mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  const int error = errno;
  if (file >= 0)
    ::close(file);
  if (mapped == MAP_FAILED) {
    throw ConfigError("no temporary file of " + std::to_string(bytes) + " bytes (" + path + ": " +
                      std::strerror(error) + "); set TMPDIR to a folder with space");
  }
  MappedBytes result;
  result.data_ = static_cast<std::byte*>(mapped);
  result.bytes_ = bytes;
  result.in_file_ = true;
  return result;
}

void require_temporary_space(std::uint64_t bytes) {
  const std::string folder = temporary_folder();
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0)
    return;  // the folder has gone; the file has not
  if (const std::uint64_t free = disk.f_bavail * disk.f_frsize; free < bytes) {
    throw HostMemoryError("the simulated SSD is a temporary file in " + folder + ", where only " +
                          std::to_string(free >> 20) +
                          " MiB are left; set TMPDIR to a folder with more space, or choose less data");
  }
}

void MappedBytes::check_disk() {
  unchecked_ = 0;
  require_temporary_space(kFreeOnDisk);
}

void MappedBytes::let_go() noexcept {
  ::madvise(data_, bytes_, MADV_DONTNEED);  // of a shared mapping: its pages leave this process, not the file
  held_ = 0;
}

MappedBytes::~MappedBytes() {
  if (data_ == nullptr)
    return;
  if (!in_file_ && bytes_ <= kMostOnHeap)
    std::free(data_);
  else
    ::munmap(data_, bytes_);
}

}  // namespace pmsim::memory
