#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

#include "pmsim/memory/host_mapping.hpp"

namespace pmsim::memory {

/// Group commit on a file: what the machine model does in virtual time (machine/group_commit.hpp), by threads
/// of the host. Thread-safe.
///
/// What is durable when: a piece, with all that were gathered before it, when commit() of its number returns.
class HostGroup {
 public:
  /// A piece of memory for `offset` of the file, which stays as it is until it is durable. Its number, from 1
  /// on.
  std::uint64_t gather(std::uint64_t offset, std::span<const std::byte> from);

  /// Throws ConfigError where the file cannot be written, in every thread that waits, and from then on.
  void commit(std::uint64_t gathered, const BlockFile& file);

  /// Groups that have been written.
  [[nodiscard]] std::uint64_t groups() const;

 private:
  struct Piece {
    std::uint64_t offset;
    std::span<const std::byte> from;
  };
  static void write(std::span<const Piece> group, const BlockFile& file);

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Piece> next_;
  std::uint64_t gathered_ = 0;
  std::uint64_t durable_ = 0;
  std::uint64_t groups_ = 0;
  bool under_way_ = false;
  std::exception_ptr failed_;
};

}  // namespace pmsim::memory
