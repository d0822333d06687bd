#include "pmsim/memory/mapped_bytes.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "pmsim/core/error.hpp"

namespace pmsim::memory {

MappedBytes::MappedBytes(std::uint64_t bytes) : bytes_(bytes) {
  if (bytes == 0)
    return;
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

MappedBytes::~MappedBytes() {
  if (data_ != nullptr)
    ::munmap(data_, bytes_);
}

}  // namespace pmsim::memory
