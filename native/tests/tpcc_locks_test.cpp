#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/memory/stream.hpp"
#include "pmsim/workloads/oltp/tpcc/tpcc.hpp"

namespace pmsim::workloads::oltp::tpcc {
namespace {

using memory::OpKind;
using memory::SimMemory;

constexpr Cardinalities kSmall{.warehouses = 2, .items = 200, .customers = 30};

TEST(RowLocks, EachRowOfEachCopyHasALineOfItsOwn) {
  SimMemory memory;
  RowLocks locks(kSmall, {.copies = 3});
  locks.allocate(memory);
  std::set<memory::Address> lines;
  std::uint64_t rows = 0;
  const auto add = [&](memory::Address line) {
    EXPECT_EQ(line % memory::kLineBytes, 0U);
    lines.insert(line);
    ++rows;
  };
  for (std::uint32_t copy = 0; copy < 3; ++copy) {
    for (std::uint64_t warehouse = 1; warehouse <= kSmall.warehouses; ++warehouse) {
      add(locks.deliveries(warehouse, copy));
      add(locks.warehouse(warehouse, copy));
      for (std::uint64_t item = 1; item <= kSmall.items; ++item)
        add(locks.stock(warehouse, item, copy));
      for (std::uint64_t district = 1; district <= kDistricts; ++district) {
        add(locks.district(warehouse, district, copy));
        for (std::uint64_t customer = 1; customer <= kSmall.customers; ++customer)
          add(locks.customer(customer_key(warehouse, district, customer), copy));
      }
    }
  }
  EXPECT_EQ(lines.size(), rows);
  const auto& region = memory.regions().places(memory::Medium::kDram).back();
  EXPECT_EQ(*lines.begin(), region.base);
  EXPECT_EQ(*lines.rbegin() + memory::kLineBytes, region.base + region.bytes);
}

/// What a transaction does to locks of rows, and when it becomes durable.
struct Locking {
  std::vector<memory::Address> acquired;
  std::size_t last_acquired = 0, first_released = 0, released = 0, last_fence = 0;
};

/// TPC-C on an engine with a log on PMem, or on the SSD, committed in groups.
class LockedTpcc {
 public:
  LockedTpcc(const LockOptions& locks, const std::string& log_device) : tpcc_(kSmall, 1, locks) {
    engines::EngineOptions options;
    options.engine = "main-memory";
    options.dram_bytes = options.pmem_bytes = options.ssd_bytes = 64 << 20;
    options.log_bytes = 16 << 20;
    options.log_device = log_device;
    options.commits = log_device == "ssd" ? "group" : "single";
    options.threads = 2;
    engine_ = engines::engine_named<SimMemory>(options.engine).create(memory_, options);
    tpcc_.load(memory_, *engine_, 0.66, {});
    for (const memory::RegionPlace& place : memory_.regions().places(memory::Medium::kDram)) {
      if (place.name == "row locks")
        rows_ = place;
    }
  }

  Locking run(Type type) {
    memory::Stream stream;
    memory_.attach(stream);
    committed_ = tpcc_.run(type, memory_, *engine_, random_).committed;
    memory_.detach();
    Locking seen;
    for (std::size_t at = 0; at < stream.size(); ++at) {
      const memory::MicroOp& op = stream[at];
      const bool row = op.address >= rows_.base && op.address < rows_.base + rows_.bytes;
      if (row && op.kind == OpKind::kAcquire) {
        seen.acquired.push_back(op.address);
        seen.last_acquired = at;
      } else if (row && op.kind == OpKind::kRelease && seen.released++ == 0) {
        seen.first_released = at;
      } else if (op.kind == OpKind::kSfence || op.kind == OpKind::kBlockCommit) {
        seen.last_fence = at;
      }
    }
    return seen;
  }
  [[nodiscard]] bool committed() const noexcept { return committed_; }
  [[nodiscard]] std::string check() { return tpcc_.check(memory_, *engine_); }

 private:
  SimMemory memory_;
  Tpcc<SimMemory> tpcc_;
  std::unique_ptr<engines::Engine<SimMemory>> engine_;
  Random random_{7};
  memory::RegionPlace rows_;
  bool committed_ = true;
};

TEST(RowLocks, ATransactionLocksInOrderAndKeepsAllUntilItIsDurable) {
  for (const std::string device : {"pmem", "ssd"}) {
    LockedTpcc run({.copies = 2}, device);
    for (int count = 0; count < 500; ++count) {
      const Type type = count % 2 == 0 ? Type::kNewOrder : count % 4 == 1 ? Type::kPayment : Type::kDelivery;
      const Locking seen = run.run(type);
      EXPECT_TRUE(std::ranges::is_sorted(seen.acquired, std::less_equal{}));
      EXPECT_EQ(seen.released, seen.acquired.size());
      EXPECT_GT(seen.first_released, seen.last_acquired);
      if (run.committed()) {
        EXPECT_GT(seen.first_released, seen.last_fence);
      }
      if (type == Type::kNewOrder) {
        EXPECT_GE(seen.acquired.size(), 3U);
      } else if (type == Type::kPayment) {
        EXPECT_EQ(seen.acquired.size(), 3U);
      }
    }
    EXPECT_EQ(run.check(), "");
  }
}

TEST(RowLocks, EarlyTheyAreGivenUpWhenTheTransactionHasItsPlaceInTheLog) {
  for (const std::string device : {"pmem", "ssd"}) {
    LockedTpcc run({.copies = 1, .early = true}, device);
    for (int count = 0; count < 200; ++count) {
      const Locking seen = run.run(count % 2 == 0 ? Type::kNewOrder : Type::kPayment);
      EXPECT_EQ(seen.released, seen.acquired.size());
      EXPECT_GT(seen.first_released, seen.last_acquired);
      if (run.committed()) {
        EXPECT_LT(seen.first_released, seen.last_fence);
      }
    }
    EXPECT_EQ(run.check(), "");
  }
}

TEST(RowLocks, WhoOnlyReadsWaitsForWhoWrites) {
  LockedTpcc run({.copies = 1}, "pmem");
  EXPECT_EQ(run.run(Type::kOrderStatus).acquired.size(), 1U);
  EXPECT_EQ(run.run(Type::kStockLevel).acquired.size(), 0U);
}

TEST(RowLocks, WithoutThemNothingIsDifferent) {
  LockedTpcc run({}, "pmem");
  EXPECT_EQ(run.run(Type::kNewOrder).acquired.size(), 0U);
}

}  // namespace
}  // namespace pmsim::workloads::oltp::tpcc
