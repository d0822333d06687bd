#pragma once

#include <array>
#include <cstdint>

#include "pmsim/blocks/site.hpp"
#include "pmsim/engines/wal/record.hpp"

namespace pmsim::engines::wal {

using blocks::SiteInfo;
using memory::Address;
using memory::Site;

/// The LSN before which nothing is redone, where there are several logs. These are truncated one after the
/// other, each when it is full: what has been redone for good in one of them may be missing in another. Without
/// it, a page would come into being again by its allocation in one log whose release was in the other.
///
/// What is durable when. move_to(): on return, before any log is truncated to it. Everything before it must be
/// durable in the pages and in the map of pages then.
class Horizon {
 public:
  static constexpr Site kFlush = 1113, kFence = 1114, kSectorFlush = 1115;
  static constexpr std::array<SiteInfo, 2> kPmemSites{{
      {kFlush, "several logs: write back up to where redo is over"},
      {kFence, "several logs: wait for it before a log is truncated"},
  }};
  static constexpr std::array<SiteInfo, 1> kSsdSites{{
      {kSectorFlush, "several logs on SSD: flush up to where redo is over before a log is truncated"},
  }};
  /// Of the device, and of `buffer`, which is in DRAM and has what a sector of an SSD is made of.
  static constexpr std::uint64_t kBytes = memory::kSectorBytes;

  Horizon() = default;
  Horizon(bool on_ssd, Address device, Address buffer) noexcept
      : on_ssd_(on_ssd), device_(device), buffer_(buffer) {}

  template <Memory M>
  [[nodiscard]] Lsn load(M& memory) const {
    if (on_ssd_)
      memory.block_read(device_, buffer_, kBytes);
    return memory.template load<Lsn>(on_ssd_ ? buffer_ : device_);
  }
  template <Memory M>
  void move_to(M& memory, Lsn lsn) const {
    memory.template store<Lsn>(on_ssd_ ? buffer_ : device_, lsn);
    if (on_ssd_) {
      memory.block_write(device_, buffer_, kBytes);
      memory.block_flush(kSectorFlush);
    } else {
      memory.flush(device_, sizeof lsn, memory::FlushKind::kClwb, kFlush);
      memory.sfence(kFence);
    }
  }

 private:
  bool on_ssd_ = false;
  Address device_ = 0;
  Address buffer_ = 0;
};

}  // namespace pmsim::engines::wal
