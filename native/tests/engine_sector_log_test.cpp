#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/engines/wal/sector_log.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines::wal {
namespace {

using memory::Address;
using memory::SimMemory;

constexpr std::uint64_t kBytes = 64 * kSectorBytes;
constexpr std::uint64_t kStaging = 9 * kSectorBytes;  ///< eight of them for entries
using Entries = std::vector<std::vector<std::byte>>;

std::int64_t block_reads(const memory::Stream& stream) {
  std::int64_t reads = 0;
  for (std::size_t index = 0; index < stream.size(); ++index)
    reads += stream[index].kind == memory::OpKind::kBlockRead ? 1 : 0;
  return reads;
}

/// All entries, read with a window; `read` counts commands of the device.
Entries entries_of(SimMemory& memory, const SectorLog& log, Address staging, std::int64_t& reads) {
  memory::Stream stream;
  memory.attach(stream, 0);
  Entries found;
  SectorLog::Window window;
  std::vector<std::byte> entry;
  Lsn at = log.head();
  while (const std::optional<Lsn> next = log.read(memory, at, entry, staging, &window)) {
    found.push_back(entry);
    at = *next;
  }
  memory.detach();
  reads = block_reads(stream);
  return found;
}

TEST(SectorLog, IsReadInLargePiecesAlsoWhereItBeginsAnew) {
  SimMemory memory;
  const Address device = memory.allocate(memory::Medium::kBlock, kBytes, {.name = "log"});
  const Address staging = memory.allocate(memory::Medium::kDram, kStaging, {.name = "staging"});
  SectorLog log = SectorLog::create(memory, device, kBytes, staging, kStaging);
  Random random(7);
  Entries live;
  std::vector<Lsn> lsns;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> entry(8 * (1 + random.below(300)));  // of one sector to five
    std::ranges::generate(entry, [&] { return static_cast<std::byte>(random.next()); });
    while (!log.fits(entry.size())) {
      const std::size_t dropped = 1 + random.below(lsns.size());
      log.truncate_to(memory, dropped == lsns.size() ? log.tail() : lsns[dropped]);
      live.erase(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(dropped));
      lsns.erase(lsns.begin(), lsns.begin() + static_cast<std::ptrdiff_t>(dropped));
    }
    memory.write(staging + SectorLog::kHeadBytes, entry);
    lsns.push_back(log.tail());
    log.append(memory, entry.size());
    live.push_back(entry);

    std::int64_t reads = 0;
    ASSERT_EQ(entries_of(memory, log, staging, reads), live) << "after entry " << round;
    // Of eight sectors at a time an entry of five may leave out three; and once the space begins anew.
    const auto sectors = static_cast<std::int64_t>((log.tail() - log.head()) / kSectorBytes);
    ASSERT_LE(reads, sectors / 4 + 2);

    memory::Stream stream;
    memory.attach(stream, 0);
    const std::optional<SectorLog> recovered = SectorLog::recover(memory, device, kBytes, staging, kStaging);
    memory.detach();
    ASSERT_TRUE(recovered);
    ASSERT_EQ(recovered->tail(), log.tail());
    ASSERT_LE(block_reads(stream), sectors / 4 + 4);
    log = *recovered;
  }
}

}  // namespace
}  // namespace pmsim::engines::wal
