#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "pmsim/core/error.hpp"

namespace pmsim::workloads::oltp {

/// An empty file in $TMPDIR or else /var/tmp that goes when this object does.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder != nullptr && *folder != '\0' ? folder : "/var/tmp") + "/pmsim-XXXXXX";
    const int file = ::mkstemp(path_.data());
    if (file < 0)
      throw ConfigError(path_ + ": " + std::strerror(errno) + "; set TMPDIR to a folder with space");
    ::close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace pmsim::workloads::oltp
