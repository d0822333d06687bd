#include "pmsim/memory/replica.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace pmsim::memory {
namespace {

/// A memory with a region of each medium, and random things to do to it.
struct Machine {
  SimMemory memory{{.persistence = Persistence::kAdr}};
  Address dram = 0, pmem = 0, block = 0;
  static constexpr std::uint64_t kBytes = 1000;  // the last line is not whole

  void allocate() {
    dram = memory.allocate(Medium::kDram, 1024);
    pmem = memory.allocate(Medium::kPmem, kBytes, {.name = "a"});
    block = memory.allocate(Medium::kBlock, 2048);
  }
  void act(SimMemory& on, Random& random) const {
    const std::uint64_t word = pmem + 8 * random.below(kBytes / 8);
    const std::uint64_t value = random.next();
    switch (random.below(6)) {
      case 0:
        return on.store<std::uint64_t>(word, value);
      case 1:
        return on.stream(word, std::as_bytes(std::span(&value, 1)));
      case 2:
        return on.flush(word, 8);
      case 3:
        return random.below(4) == 0 ? on.sfence() : on.order();
      case 4:
        return on.store<std::uint64_t>(dram + 8 * random.below(128), value);
      default:
        return on.block_write(block + 512 * random.below(4), dram, 512);
    }
  }
};

std::vector<std::byte> bytes_of(const SimMemory& memory) {
  std::vector<std::byte> all;
  for (const Medium medium : {Medium::kDram, Medium::kPmem, Medium::kBlock}) {
    for (const RegionPlace& place : memory.regions().places(medium)) {
      std::vector<std::byte> bytes(place.bytes);
      memory.peek(place.base, bytes);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  }
  return all;
}

TEST(Replica, HasTheBytesOfACrashAndIsPutBackAfterIt) {
  Machine machine;
  Replica replica(machine.memory, Persistence::kAdr);
  Replica second(replica.memory(), Persistence::kUntracked);
  machine.allocate();
  Random random(3);
  const std::array replicas{&replica};
  const std::array seconds{&second};
  for (int step = 0; step < 1000; ++step) {
    machine.act(machine.memory, random);
    replica.sync();
    Replica::forget_changes(machine.memory, replicas);
    second.sync();
    Replica::forget_changes(replica.memory(), seconds);
    const std::uint64_t before = replica.hash();
    const DurableImage image = machine.memory.durability().sample(random);
    for (const CellBytes& cell : image)
      replica.put(cell.address, cell.bytes);
    SimMemory crashed = machine.memory.crash(image);
    ASSERT_EQ(bytes_of(replica.memory()), bytes_of(crashed)) << step;
    // A recovery does something, allocates, and crashes in its turn.
    for (int action = 0; action < 5; ++action) {
      Random same = random;
      machine.act(replica.memory(), random);
      machine.act(crashed, same);
    }
    if (step % 10 == 0)
      replica.memory().allocate(Medium::kDram, 64);
    second.sync();
    const DurableImage again = replica.memory().durability().sample(random);
    for (const CellBytes& cell : again)
      second.put(cell.address, cell.bytes);
    ASSERT_EQ(bytes_of(second.memory()), bytes_of(replica.memory().crash(again))) << step;
    second.restore();
    Replica::forget_changes(second.memory(), {});
    replica.restore();
    second.sync_again();
    Replica::forget_changes(replica.memory(), seconds);
    ASSERT_EQ(replica.hash(), before);
    ASSERT_EQ(replica.memory().durability().uncertain_lines(), 0U);
    // As after a crash that loses dram only.
    DurableImage nothing_lost;
    const SimMemory whole = machine.memory.crash(nothing_lost);
    ASSERT_EQ(bytes_of(replica.memory()), bytes_of(whole)) << step;
    ASSERT_EQ(bytes_of(second.memory()), bytes_of(whole)) << step;
  }
}

TEST(Replica, EqualBytesHaveEqualHashes) {
  SimMemory memory({.persistence = Persistence::kAdr});
  Replica replica(memory, Persistence::kUntracked);
  const Address base = memory.allocate(Medium::kPmem, 128);
  const auto hash_after = [&](std::uint64_t first, std::uint64_t second) {
    memory.store<std::uint64_t>(base, first);
    memory.store<std::uint64_t>(base + 64, second);
    replica.sync();
    return replica.hash();
  };
  const std::uint64_t zero = hash_after(0, 0);
  const std::uint64_t one = hash_after(1, 2);
  EXPECT_NE(one, zero);
  EXPECT_NE(hash_after(2, 1), one);
  EXPECT_EQ(hash_after(1, 2), one);
  EXPECT_EQ(hash_after(0, 0), zero);
}

}  // namespace
}  // namespace pmsim::memory
