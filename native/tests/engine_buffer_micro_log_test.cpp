#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "pmsim/engines/buffer/write_back.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines::buffer {
namespace {

using memory::SimMemory;
using Bytes = std::vector<std::byte>;

Bytes content(const SimMemory& memory, Address from, std::uint32_t bytes) {
  Bytes found(bytes);
  memory.peek(from, found);
  return found;
}

/// How many of the sampled crashes while a home is replaced leave a page that is neither old nor new. Dirty are
/// its first line and one near its end, which the last word of the micro log's mask names.
int torn_pages(std::uint32_t page_bytes, memory::Site disabled) {
  SimMemory memory({.capacities = {}, .persistence = memory::Persistence::kAdr});
  const Address home = memory.allocate(memory::Medium::kPmem, page_bytes);
  const Address log = memory.allocate(memory::Medium::kPmem, PmemWriter::micro_log_bytes(page_bytes));
  const Address frame = memory.allocate(memory::Medium::kDram, page_bytes);
  const PmemWriter writer(log, page_bytes, true, Write::kStream);
  const auto source = [&](std::uint32_t line) { return frame + line * kLineBytes; };
  const std::uint32_t lines_in_all = page_bytes / kLineBytes;
  LineMask lines;
  /// Each time other lines: a word of the mask that is lost names the wrong ones.
  const auto change = [&](std::uint64_t lsn) {
    lines = {};
    for (const std::uint32_t line : {0U, lines_in_all - 2 * static_cast<std::uint32_t>(lsn)}) {
      lines.set(line);
      memory.store<std::uint64_t>(source(line) + 32, 100 * lsn + line);
    }
    memory.store<std::uint64_t>(frame + kLsnAt, lsn);
  };
  change(1);
  writer.replace(memory, home, lines, kPageMark, source);
  const Bytes before = content(memory, home, page_bytes);
  change(2);
  Bytes after = content(memory, frame, page_bytes);
  std::memcpy(after.data() + kMarkAt, &kPageMark, sizeof kPageMark);

  memory.disable_site(disabled);
  int torn = 0;
  memory.on_persistence_step([&] {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Random random(seed);
      SimMemory crashed = memory.crash(memory.durability().sample(random));
      writer.recover(crashed);
      const Bytes found = content(crashed, home, page_bytes);
      torn += found != before && found != after ? 1 : 0;
    }
  });
  writer.replace(memory, home, lines, kPageMark, source);
  memory.on_persistence_step({});
  return torn;
}

TEST(PmemWriter, a_micro_log_of_large_pages_needs_the_write_back_of_its_whole_head) {
  for (const std::uint32_t page_bytes : {32U << 10, 64U << 10}) {
    EXPECT_EQ(torn_pages(page_bytes, memory::kNoSite), 0) << page_bytes;
    EXPECT_GT(torn_pages(page_bytes, site::kMicroHeadFlush), 0) << page_bytes;
  }
}

/// As it is declared: the whole head shares the line of the name.
TEST(PmemWriter, a_micro_log_of_pages_of_16_kib_does_not) {
  EXPECT_EQ(torn_pages(16U << 10, site::kMicroHeadFlush), 0);
}

}  // namespace
}  // namespace pmsim::engines::buffer
