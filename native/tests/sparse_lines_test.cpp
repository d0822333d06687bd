// Sparse regions hold the same bytes as mapped ones.
#include "pmsim/memory/sparse_lines.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::memory {
namespace {

TEST(SparseLines, SparseAndMappedRegionsReadAlikeAfterRandomWrites) {
  SimMemory memory;
  const std::uint64_t bytes = 1 << 20;
  const Address mapped = memory.allocate(Medium::kPmem, bytes);
  const Address sparse = memory.allocate(Medium::kDram, bytes, {.name = "sparse", .backing = Backing::kSparse});
  Random random(9);
  for (int write = 0; write < 20'000; ++write) {
    std::vector<std::byte> data(1 + random.below(200));
    for (std::byte& byte : data)
      byte = static_cast<std::byte>(random.next());
    const std::uint64_t offset = random.below(bytes - data.size());
    memory.write(mapped + offset, data);
    memory.write(sparse + offset, data);
    std::vector<std::byte> one(1 + random.below(200));
    std::vector<std::byte> other(one.size());
    const std::uint64_t from = random.below(bytes - one.size());
    memory.read(mapped + from, one);
    memory.read(sparse + from, other);
    ASSERT_EQ(one, other);
  }
  std::vector<std::byte> all(bytes);
  std::vector<std::byte> same(bytes);
  memory.read(mapped, all);
  memory.read(sparse, same);
  EXPECT_EQ(all, same);
}

TEST(SparseLines, AHugeRegionTakesTheLinesThatWereWritten) {
  SimMemory memory;
  const std::uint64_t bytes = 1ULL << 40;
  const Address base = memory.allocate(Medium::kPmem, bytes, {.name = "huge", .backing = Backing::kSparse});
  Random random(2);
  for (int write = 0; write < 10'000; ++write)
    memory.store<std::uint64_t>(base + random.below(bytes / kLineBytes) * kLineBytes, 1);
  EXPECT_LE(memory.touched_bytes(), 10'000U * kLineBytes);
  EXPECT_GT(memory.touched_bytes(), 9'900U * kLineBytes);
}

TEST(SparseLines, ATrackedRegionIsNotSparse) {
  SimMemory memory{{.persistence = Persistence::kAdr}};
  const Address base = memory.allocate(Medium::kPmem, 4096, {.name = "array", .backing = Backing::kSparse});
  memory.store<std::uint64_t>(base, 7);
  EXPECT_EQ(memory.word_state(base), WordState::kMaybe);
}

}  // namespace
}  // namespace pmsim::memory
