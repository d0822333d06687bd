#include "pmsim/memory/host_mapping.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "pmsim/core/error.hpp"

namespace pmsim::memory {

namespace {

constexpr std::uint64_t kSmallPage = 4096;
constexpr std::uint64_t kLargePage = std::uint64_t{1} << 21;
constexpr std::uint64_t kStatBlock = 512;  ///< what st_blocks counts, whatever the file system's block

[[noreturn]] void fail(const std::string& path, const std::string& what, const std::string& remedy) {
  const int error = errno;
  throw ConfigError(path + ": " + what + ": " + std::strerror(error) + "; " + remedy);
}

/// A grown file is all holes. A store to a page that finds no room kills the process (SIGBUS), where a write
/// would fail: the room is asked for while it can still be refused.
void require_room(const FileDescriptor& file, const struct stat& status, const std::string& path,
                  std::uint64_t bytes) {
  struct statvfs disk {};
  const std::uint64_t held = static_cast<std::uint64_t>(status.st_blocks) * kStatBlock;
  if (held >= bytes || ::fstatvfs(file.get(), &disk) != 0)
    return;
  if (const std::uint64_t left = disk.f_bavail * disk.f_frsize; left < bytes - held) {
    throw ConfigError(path + ": takes " + std::to_string((bytes - held) >> 20) +
                      " MiB and its file system has " + std::to_string(left >> 20) +
                      " left; free some space or lower the capacity");
  }
}

/// Opens for reading and writing, and grows a regular file to `bytes`; what is already there stays.
FileDescriptor open_sized(const std::string& path, std::uint64_t bytes, int flags, bool mapped) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644));
  if (file.get() < 0)
    fail(path, "cannot be opened", "name a writable file in an existing directory");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    fail(path, "cannot be examined", "name a regular file");
  if (!S_ISREG(status.st_mode))
    return file;  // a device has the size it has
  if (mapped)
    require_room(file, status, path, bytes);
  if (static_cast<std::uint64_t>(status.st_size) < bytes &&
      ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    fail(path, "cannot grow to " + std::to_string(bytes) + " bytes", "free some space or lower the capacity");
  }
  return file;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

HostMapping HostMapping::anonymous(std::uint64_t bytes, bool large_pages) {
  if (bytes == 0)
    return {};
  const std::uint64_t slack = large_pages ? kLargePage : 0;
  void* mapped = ::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    fail("anonymous memory", std::to_string(bytes) + " bytes are refused", "lower the capacity");
  auto* data = static_cast<std::byte*>(mapped);
  if (large_pages) {
    // Keep the aligned part. The lengths of both rests are whole small pages as far as mmap rounds them.
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const std::uint64_t before = (kLargePage - address % kLargePage) % kLargePage;
    const std::uint64_t kept = (bytes + kSmallPage - 1) / kSmallPage * kSmallPage;
    if (before > 0)
      ::munmap(data, before);
    if (slack > before)
      ::munmap(data + before + kept, slack - before);
    data += before;
#if defined(MADV_HUGEPAGE)
    static_cast<void>(::madvise(data, bytes, MADV_HUGEPAGE));  // a wish: small pages are slower, not wrong
#endif
  }
  return {data, bytes, false};
}

HostMapping HostMapping::file(const std::string& path, std::uint64_t bytes) {
  if (bytes == 0)
    return {};
  FileDescriptor file = open_sized(path, bytes, 0, true);
  // Two processes in one file overwrite each other's data, and a chase follows pointers that it finds there.
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw ConfigError(path +
                      ": is in use, by this or another process; name another file, or wait until it is free");
  }
  void* data = MAP_FAILED;
#if defined(MAP_SYNC) && defined(MAP_SHARED_VALIDATE)
  data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, file.get(), 0);
#endif
  const bool dax = data != MAP_FAILED;
  if (!dax)
    data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED)
    fail(path, "cannot be mapped", "name a regular file or a DAX device of that size");
  return {static_cast<std::byte*>(data), bytes, dax, std::move(file)};
}

HostMapping::~HostMapping() {
  if (data_ != nullptr)
    ::munmap(data_, bytes_);
}

BlockFile::BlockFile(const std::string& path, std::uint64_t bytes, bool direct) : path_(path) {
#ifdef O_DIRECT
  file_ = open_sized(path, bytes, direct ? O_DIRECT : 0, false);
#else
  if (direct)
    throw ConfigError(path + ": this system has no O_DIRECT; use block_direct = false");
  file_ = open_sized(path, bytes, 0, false);
#endif
}

void BlockFile::read(std::uint64_t offset, std::byte* into, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = ::pread(file_.get(), into + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      fail(path_, "read failed", "with block_direct, memory and size must be multiples of the sector");
    if (got == 0)
      throw ConfigError(path_ + ": ends before offset " + std::to_string(offset + done) + "; it was cut");
    done += static_cast<std::size_t>(got);
  }
}

void BlockFile::write(std::uint64_t offset, const std::byte* from, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t put = ::pwrite(file_.get(), from + done, bytes - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      fail(path_, "write failed", "free some space, or align to the sector with block_direct");
    done += static_cast<std::size_t>(put);
  }
}

void BlockFile::write(std::uint64_t offset, std::span<const std::span<const std::byte>> pieces) const {
  static constexpr std::size_t kMost = 64;  // POSIX promises 16, Linux has 1024
  std::array<iovec, kMost> vector;
  for (; !pieces.empty(); pieces = pieces.subspan(std::min(kMost, pieces.size()))) {
    const auto now = pieces.first(std::min(kMost, pieces.size()));
    std::size_t bytes = 0;
    for (std::size_t index = 0; index < now.size(); ++index) {
      vector[index] = {const_cast<std::byte*>(now[index].data()), now[index].size()};
      bytes += now[index].size();
    }
    const ssize_t put =
        ::pwritev(file_.get(), vector.data(), static_cast<int>(now.size()), static_cast<off_t>(offset));
    if (put != static_cast<ssize_t>(bytes)) {  // interrupted, cut short or failed: write() says which
      std::uint64_t place = offset;
      for (const std::span<const std::byte> piece : now) {
        write(place, piece.data(), piece.size());
        place += piece.size();
      }
    }
    offset += bytes;
  }
}

void BlockFile::flush() const {
  if (::fdatasync(file_.get()) != 0)
    fail(path_, "flush failed", "the device reports an error");
}

}  // namespace pmsim::memory
