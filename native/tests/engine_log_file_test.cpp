#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>

#include "engine_wal_rig.hpp"
#include "pmsim/engines/wal/log_file.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// What a log says of its room is what append() takes.

namespace pmsim::engines::wal {
namespace {

using memory::Medium;
using memory::SimMemory;

class LogFileRoom : public testing::TestWithParam<rig::Device> {};

/// The head stands within a line, at each of its words in turn, and the log is filled up to less than a line.
TEST_P(LogFileRoom, IsWhatAppendTakes) {
  const EngineOptions options = rig::options_of(GetParam());
  constexpr std::uint64_t kBatch = 2048;
  std::mutex latch;
  int full = 0, taken = 0;
  for (std::uint64_t first = 8; first <= 64; first += 8) {
    for (std::uint64_t last = 8; last <= 1024; last += 8) {
      SimMemory memory;
      LogFile::Place place{.bytes = 8192,
                           .staging_bytes = LogFile::staging_bytes(kBatch),
                           .tail_bytes = LogFile::tail_bytes(options, kBatch)};
      place.log = memory.allocate(options.log_device == "ssd" ? Medium::kBlock : Medium::kPmem, place.bytes);
      place.staging = memory.allocate(Medium::kDram, place.staging_bytes);
      if (place.tail_bytes > 0)
        place.tail = memory.allocate(Medium::kDram, place.tail_bytes);
      LogFile log = LogFile::create(memory, options, place);
      const auto append = [&](std::uint64_t bytes) {
        log.append(
            memory, bytes, place.staging + LogFile::kHeadBytes, [&] { return std::unique_lock(latch); }, [] {});
      };
      append(first);
      const Lsn second = log.tail();
      append(64);
      log.truncate_to(memory, second);
      while (log.has_room(1000, 1000))
        append(200);
      if (!log.has_room(last, last)) {
        ++full;
        EXPECT_THROW(append(last), blocks::log::LogFull) << first << " " << last;
      } else {
        ++taken;
        EXPECT_NO_THROW(append(last)) << first << " " << last;
      }
    }
  }
  EXPECT_GT(full, 0);
  EXPECT_GT(taken, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, LogFileRoom,
    testing::Values(rig::Device{"pmem", "poplog", "dram-tail"}, rig::Device{"pmem", "rawl", "dram-tail"},
                    rig::Device{"pmem", "classic", "dram-tail"}, rig::Device{"pmem", "header", "dram-tail"},
                    rig::Device{"pmem", "poplog", "naive"}, rig::Device{"pmem", "rawl", "padded"},
                    rig::Device{"ssd", "poplog", "naive"}),
    rig::name_of);

}  // namespace
}  // namespace pmsim::engines::wal
