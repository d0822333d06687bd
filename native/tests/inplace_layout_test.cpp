// In-place updates: which sizes there are, and where values lie, on simulated and on real memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "inplace_values.hpp"
#include "pmsim/blocks/inplace/driver.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::inplace {
namespace {

using memory::Address;
using memory::Medium;
using memory::SimMemory;

TEST(InPlaceSizes, ABadSizeIsRefused) {
  for (const std::size_t bytes : {0U, 4U, 12U, 1032U}) {
    EXPECT_THROW(Fam{bytes}, ConfigError);
    EXPECT_THROW(Cow{bytes}, ConfigError);
  }
  EXPECT_THROW(AtomicWord(16), ConfigError);
  SimMemory memory;
  const Address log = memory.allocate(Medium::kPmem, 4096);
  EXPECT_THROW(static_cast<void>(Logged::create(memory, 16, {.base = log, .bytes = 64})), ConfigError);
  EXPECT_THROW(static_cast<void>(Logged::create(memory, 12, {.base = log, .bytes = 4096})), ConfigError);
}

TEST(InPlaceHost, TheSameCodeRunsOnRealMemory) {
  memory::HostMemory memory({.best_flush = true});
  const Address log = memory.allocate(Medium::kPmem, 1 << 12);
  const Address records = memory.allocate(Medium::kPmem, 1 << 14);
  for (const std::size_t bytes : {8U, 16U, 24U, 64U, 128U}) {
    Fam fam(bytes);
    Cow cow(bytes);
    Logged logged = Logged::create(memory, bytes, {.base = log, .bytes = 1 << 12});
    for (std::uint64_t round = 0; round < 100; ++round) {  // the log wraps
      const Value value = value_of(round, bytes);
      Value read(bytes);
      fam.update(memory, records, value);
      fam.read(memory, records, read);
      ASSERT_EQ(read, value);
      cow.update(memory, records + 2048, value);
      cow.read(memory, records + 2048, read, Reads::kDependent);
      ASSERT_EQ(read, value);
      logged.update(memory, records + 4096, value);
      logged.read(memory, records + 4096, read);
      ASSERT_EQ(read, value);
    }
    memory.write(records, Value(1 << 14));
    memory.write(log, Value(1 << 12));
  }
}

/// What a simulated or timed run has done is really there: the last write to each record, over all its
/// operations.
TEST(InPlaceDriver, RecordsHoldTheLastValueThatWasWritten) {
  for (const std::string_view algorithm : kMethods) {
    for (const bool random : {false, true}) {
      SimMemory memory;
      const std::size_t bytes = algorithm == "word" ? 8 : 48;
      InPlaceDriver<SimMemory> driver(memory, {.algorithm = std::string(algorithm),
                                               .bytes = bytes,
                                               .random = random,
                                               .array_bytes = 1 << 14,
                                               .log_bytes = 1 << 12,
                                               .threads = 2});
      std::map<std::pair<std::uint32_t, Address>, std::uint64_t> last;
      for (std::uint64_t write = 1; write <= 500; ++write) {
        for (const std::uint32_t thread : {0U, 1U}) {
          driver.prepare(memory, thread);
          driver.operation(memory, thread);
          last[{thread, driver.record(thread)}] = write;
        }
      }
      EXPECT_GT(last.size(), 50U);
      std::set<Address> records;
      for (const auto& [where, write] : last) {
        Value expected(bytes);
        Value found(bytes);
        InPlaceDriver<SimMemory>::fill(expected, write);
        driver.read(memory, where.first, where.second, found, Reads::kIndependent);
        ASSERT_EQ(found, expected);
        EXPECT_TRUE(records.insert(where.second).second) << "two threads share a record";
      }
    }
  }
}

/// A history is given once: later writes go to one copy and the other in turns.
TEST(InPlaceDriver, ARecordKeepsTheCopyThatItsLastWriteChose) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{64}}) {
    SimMemory memory;
    InPlaceDriver<SimMemory> driver(memory, {.algorithm = "cow", .bytes = bytes, .array_bytes = 1 << 12});
    std::map<Address, std::uint8_t> active;
    for (int write = 0; write < 500; ++write) {
      driver.prepare(memory, 0);
      const Address record = driver.record(0);
      const auto flag = memory.load<std::uint8_t>(record);
      if (const auto known = active.find(record); known != active.end()) {
        ASSERT_EQ(flag, known->second) << "write " << write;
      }
      driver.operation(memory, 0);
      active[record] = flag == 0 ? 1 : 0;
    }
    EXPECT_LT(active.size(), 100U);
  }
}

/// On real memory a record that prepare() touches is in the caches when the operation comes to it.
TEST(InPlaceDriver, PreparingTouchesNoRecordWhereAllHaveTheirStateAtOnce) {
  for (const bool at_once : {false, true}) {
    SimMemory memory;
    InPlaceDriver<SimMemory> driver(memory, {.algorithm = "cow",
                                             .operation = Operation::kRead,
                                             .random = true,
                                             .array_bytes = 1 << 14,
                                             .touch_at_once = at_once});
    memory::Stream stream;
    memory.attach(stream);
    driver.prepare(memory, 0);
    EXPECT_EQ(stream.size() == 0, at_once);
    memory.detach();
    // Both copies are in use, whenever the records got their state.
    std::set<std::uint8_t> active;
    for (int read = 0; read < 64; ++read) {
      driver.prepare(memory, 0);
      active.insert(memory.load<std::uint8_t>(driver.record(0)));
    }
    EXPECT_EQ(active, (std::set<std::uint8_t>{0, 1}));
  }
}

}  // namespace
}  // namespace pmsim::blocks::inplace
