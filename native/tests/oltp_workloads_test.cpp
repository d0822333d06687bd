#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "machine_harness.hpp"
#include "pmsim/core/poll.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/workloads/oltp/tpcc/tpcc.hpp"
#include "pmsim/workloads/oltp/uniform8.hpp"
#include "pmsim/workloads/oltp/ycsb.hpp"
#include "pmsim/workloads/registry.hpp"
#include "reference_engine.hpp"

namespace pmsim::workloads::oltp {
namespace {

using memory::SimMemory;
using reference::ReferenceEngine;

TEST(Uniform8, LooksUpEveryPairAndChecksItsValue) {
  SimMemory memory;
  ReferenceEngine<SimMemory> engine;
  Uniform8<SimMemory> pairs({.rows = 100});
  pairs.load(memory, engine, 0.66, {});
  Random random(1);
  for (int run = 0; run < 5'000; ++run)
    pairs.transaction(memory, engine, random);
  EXPECT_EQ(engine.reads.size(), 100U);
  EXPECT_EQ(pairs.check(memory, engine), "");
  engine.table(0)[3].assign(8, std::byte{1});
  EXPECT_THROW(for (int run = 0; run < 5'000; ++run) pairs.transaction(memory, engine, random),
               SimulationError);
}

/// Calls of a poll while a benchmark with `rows` rows in its tables is loaded, with a share that grows; and a
/// poll that throws ends that.
template <typename Benchmark>
void expect_polls(Benchmark benchmark, const std::function<std::uint64_t(ReferenceEngine<SimMemory>&)>& rows) {
  SimMemory memory;
  ReferenceEngine<SimMemory> engine, stopped;
  std::uint64_t calls = 0;
  double share = 0;
  const auto count = [&](Doing doing) {
    ++calls;
    EXPECT_EQ(doing.phase, Phase::kLoad);
    EXPECT_GT(doing.share, share);
    share = doing.share;
  };
  benchmark().load(memory, engine, 0.66, Poll(count, Phase::kLoad));
  // The last call comes with less than a stride to go; TPC-C does not know how many lines its orders have.
  EXPECT_GT(share, 0.75);
  EXPECT_LE(share, 1.0);
  const std::uint64_t expected = rows(engine) / Poll::kStride;
  EXPECT_GT(expected, 2U);
  EXPECT_EQ(calls, expected);
  std::uint64_t left = 2;
  const auto stop = [&left](Doing) {
    if (--left == 0)
      throw std::runtime_error("Ctrl-C");
  };
  EXPECT_THROW(benchmark().load(memory, stopped, 0.66, Poll(stop, Phase::kLoad)), std::runtime_error);
}

TEST(Loading, PollsOnceForEachStrideOfRowsAndEndsWhenThatThrows) {
  const auto first_table = [](ReferenceEngine<SimMemory>& engine) { return engine.table(0).size(); };
  for (const Loading loading : {Loading::kBulk, Loading::kInserts}) {
    expect_polls([=] { return Ycsb<SimMemory>({.rows = 5'000, .mix = {}, .loading = loading}); }, first_table);
    expect_polls([=] { return Uniform8<SimMemory>({.rows = 5'000, .loading = loading}); }, first_table);
  }
  const tpcc::Cardinalities size{.warehouses = 1, .items = 500, .customers = 60};
  expect_polls([&] { return tpcc::Tpcc<SimMemory>(size, 1); },
               [](ReferenceEngine<SimMemory>& engine) {
                 std::uint64_t rows = 0;
                 for (engines::TableId table = 0; table < engine.table_count(); ++table)
                   rows += engine.table(table).size();
                 return rows;
               });
}

/// A clean end is a checkpoint, which has no transactions to count.
TEST(Restart, PollsInTheCleanEndOfAnEngineAndEndsWhenThatThrows) {
  const std::map<std::string, Parameters::Value> given{{"engine", "main-memory"},
                                                       {"workload", "ycsb-rw"},
                                                       {"update_percent", std::int64_t{100}},
                                                       {"end", "clean"},
                                                       {"warmup", std::int64_t{40'000}},
                                                       {"operations", std::int64_t{1}},
                                                       {"batches", std::int64_t{1}},
                                                       {"threads", std::int64_t{1}},
                                                       {"wear", std::int64_t{0}},
                                                       {"ssd_in_file", std::int64_t{0}},
                                                       {"dram_capacity", std::int64_t{64} << 20},
                                                       {"pmem_capacity", std::int64_t{64} << 20},
                                                       {"ssd_capacity", std::int64_t{0}},
                                                       {"page_size", std::int64_t{4096}},
                                                       {"cache_line_grained", std::int64_t{0}},
                                                       {"mini_pages", std::int64_t{0}},
                                                       {"pointer_swizzling", std::int64_t{0}},
                                                       {"leaf_layout", "sorted"},
                                                       {"admission_entries", std::int64_t{0}},
                                                       {"migration_dr", "1"},
                                                       {"migration_dw", "1"},
                                                       {"migration_nr", "1"},
                                                       {"migration_nw", "1"},
                                                       {"page_write", "ntstore"},
                                                       {"log_device", "pmem"},
                                                       {"log_algorithm", "poplog"},
                                                       {"log_layout", "padded"},
                                                       {"log_size", std::int64_t{512} << 20},
                                                       {"cpu_cycles", std::int64_t{0}},
                                                       {"transaction_cycles", std::int64_t{0}},
                                                       {"library_cycles", std::int64_t{0}},
                                                       {"system_call_cycles", std::int64_t{0}},
                                                       {"system_call_copies", std::int64_t{2}},
                                                       {"latches", std::string("optimistic")},
                                                       {"logs", std::string("shared")},
                                                       {"commits", std::string("single")},
                                                       {"cleaning", std::string("due")},
                                                       {"fixes", std::string("counted")},
                                                       {"access", std::string("field")},
                                                       {"data_size", std::int64_t{24} << 20},
                                                       {"warehouses", std::int64_t{0}},
                                                       {"lock_copies", std::int64_t{0}},
                                                       {"lock_early", std::int64_t{0}},
                                                       {"scan_length", std::int64_t{1}},
                                                       {"scan_hint", std::int64_t{0}},
                                                       {"scan_prefetch", std::int64_t{0}},
                                                       {"row_cycles", std::int64_t{0}},
                                                       {"zipf", "0"},
                                                       {"fill_factor", "0.66"},
                                                       {"loading", "bulk"},
                                                       {"row_size", std::int64_t{1000}},
                                                       {"requests", ""}};
  const machine::PlatformParams platform = machine::plain_machine();
  const auto make = [&](const Watch& watch) {
    static_cast<void>(make_workload("restart", Parameters("restart", given), platform, 1, watch));
  };
  double loaded = 0;
  int end = 0;
  make([&](Doing doing) {
    loaded = doing.phase == Phase::kLoad ? doing.share : loaded;
    end += doing.phase == Phase::kWarmUp && doing.share == 1 ? 1 : 0;
  });
  EXPECT_GE(end, 5);  // 6,000 pages, a fence each at least
  EXPECT_GT(loaded, 0.9);
  EXPECT_THROW(make([&](Doing doing) {
                 if (doing.phase == Phase::kWarmUp && doing.share == 1)
                   throw std::runtime_error("Ctrl-C");
               }),
               std::runtime_error);
}

constexpr tpcc::Cardinalities kSmall{.warehouses = 3, .items = 500, .customers = 60};

struct TpccRun {
  SimMemory memory;
  ReferenceEngine<SimMemory> engine;
  tpcc::Tpcc<SimMemory> tpcc{kSmall, 1};
  Random random{7};
  TpccRun() { tpcc.load(memory, engine, 0.66, {}); }
};

TEST(Tpcc, ThePopulationIsThatOfTheSpecification) {
  SimMemory memory;
  ReferenceEngine<SimMemory> engine;
  const tpcc::Cardinalities size{.warehouses = 1, .items = 100'000, .customers = 3'000};
  tpcc::Tpcc<SimMemory> full(size, 1);
  full.load(memory, engine, 0.66, {});
  EXPECT_TRUE(engine.ascending);
  const tpcc::TableIds& ids = full.ids();
  EXPECT_EQ(engine.table(ids.warehouse).size(), 1U);
  EXPECT_EQ(engine.table(ids.district).size(), 10U);
  for (const auto table : {ids.customer, ids.history, ids.order, ids.customer_by_name, ids.order_by_customer})
    EXPECT_EQ(engine.table(table).size(), 30'000U);
  EXPECT_EQ(engine.table(ids.new_order).size(), 9'000U);
  EXPECT_EQ(engine.table(ids.item).size(), 100'000U);
  EXPECT_EQ(engine.table(ids.stock).size(), 100'000U);
  EXPECT_NEAR(static_cast<double>(engine.table(ids.order_line).size()), 300'000, 3'000);
  EXPECT_EQ(full.check(memory, engine), "");
}

TEST(Tpcc, RowsAreThoseThatTheTablesHold) {
  TpccRun run;
  const auto held = [&run] {
    std::size_t rows = 0;
    for (const engines::TableId table : run.tpcc.tables())
      rows += run.engine.table(table).size();
    return rows;
  };
  const std::size_t loaded = held();
  EXPECT_EQ(run.tpcc.rows(), loaded);
  int rolled_back = 0;
  for (int count = 0; count < 1'000; ++count)
    rolled_back += run.tpcc.transaction(run.memory, run.engine, run.random).committed ? 0 : 1;
  EXPECT_GT(rolled_back, 0);
  EXPECT_GT(held(), loaded + 5'000);
  EXPECT_EQ(run.tpcc.rows(), held());
}

TEST(Tpcc, EveryTransactionKeepsTheConsistencyConditions) {
  TpccRun run;
  for (const tpcc::Type type : {tpcc::Type::kNewOrder, tpcc::Type::kPayment, tpcc::Type::kOrderStatus,
                                tpcc::Type::kDelivery, tpcc::Type::kStockLevel}) {
    for (int count = 0; count < 300; ++count)
      run.tpcc.run(type, run.memory, run.engine, run.random);
    EXPECT_EQ(run.tpcc.check(run.memory, run.engine), "") << tpcc::kTypeNames[static_cast<std::size_t>(type)];
  }
  for (int count = 0; count < 3'000; ++count)
    run.tpcc.transaction(run.memory, run.engine, run.random);
  EXPECT_EQ(run.tpcc.check(run.memory, run.engine), "");
}

TEST(Tpcc, OneNewOrderInAHundredRollsBackWithoutATrace) {
  TpccRun run;
  std::uint64_t rolled_back = 0;
  const std::uint64_t runs = 20'000;
  const std::size_t before = run.engine.table(run.tpcc.ids().order).size();
  for (std::uint64_t count = 0; count < runs; ++count)
    rolled_back += run.tpcc.run(tpcc::Type::kNewOrder, run.memory, run.engine, run.random).committed ? 0U : 1U;
  EXPECT_NEAR(static_cast<double>(rolled_back), 200, 5 * std::sqrt(200.0));
  EXPECT_EQ(rolled_back, run.engine.aborts);
  EXPECT_EQ(run.engine.table(run.tpcc.ids().order).size(), before + runs - rolled_back);
  EXPECT_EQ(run.tpcc.check(run.memory, run.engine), "");
}

TEST(Tpcc, DeliveriesDeliverTheOldestOrdersUntilNoneAreLeft) {
  TpccRun run;
  const std::size_t open = run.engine.table(run.tpcc.ids().new_order).size();
  run.tpcc.run(tpcc::Type::kDelivery, run.memory, run.engine, run.random);
  EXPECT_EQ(run.engine.table(run.tpcc.ids().new_order).size(), open - tpcc::kDistricts);
  for (int count = 0; count < 1'000; ++count)
    run.tpcc.run(tpcc::Type::kDelivery, run.memory, run.engine, run.random);
  EXPECT_TRUE(run.engine.table(run.tpcc.ids().new_order).empty());
  EXPECT_EQ(run.tpcc.check(run.memory, run.engine), "");
}

TEST(Tpcc, TheMixIsTheStandardOne) {
  Random random(1);
  std::array<double, 5> counts{};
  for (int draw = 0; draw < 100'000; ++draw)
    ++counts[static_cast<std::size_t>(tpcc::any_type(random))];
  const std::array<double, 5> percent{45, 43, 4, 4, 4};
  for (std::size_t type = 0; type < counts.size(); ++type)
    EXPECT_NEAR(counts[type] / 1'000, percent[type], 0.8) << tpcc::kTypeNames[type];
}

// Each condition, broken by hand: a check that cannot fail is none.
TEST(Tpcc, TheCheckSeesEachConditionBroken) {
  const auto broken = [](auto&& damage) {
    TpccRun run;
    damage(run);
    return run.tpcc.check(run.memory, run.engine);
  };
  EXPECT_NE(broken([](TpccRun& run) {
              run.engine.table(run.tpcc.ids().warehouse)[1][0] ^= std::byte{1};
            }).find("condition 1"),
            std::string::npos);
  EXPECT_NE(broken([](TpccRun& run) {
              auto& orders = run.engine.table(run.tpcc.ids().order);
              orders.erase(std::prev(orders.end()));
            }).find("condition 2"),
            std::string::npos);
  EXPECT_NE(broken([](TpccRun& run) {
              auto& open = run.engine.table(run.tpcc.ids().new_order);
              open.erase(std::next(open.begin(), 3));
            }).find("condition 3"),
            std::string::npos);
  EXPECT_NE(broken([](TpccRun& run) {
              auto& lines = run.engine.table(run.tpcc.ids().order_line);
              lines.erase(lines.begin());
            }).find("condition 4"),
            std::string::npos);
}

TEST(Tpcc, OneLineInAHundredAndFifteenPaymentsAreOfAnotherWarehouse) {
  TpccRun run;
  const std::size_t loaded = run.engine.table(run.tpcc.ids().history).size();
  constexpr int kPayments = 20'000, kOrders = 10'000;
  for (int count = 0; count < kPayments; ++count)
    run.tpcc.run(tpcc::Type::kPayment, run.memory, run.engine, run.random);
  double remote = 0;
  for (const auto& [key, bytes] : run.engine.table(run.tpcc.ids().history)) {
    tpcc::History row{};
    std::memcpy(&row, bytes.data(), sizeof row);
    remote += key >= loaded && row.customer >> 16 != row.district >> 4 ? 1 : 0;
  }
  EXPECT_NEAR(remote / kPayments, 0.15, 5 * std::sqrt(0.15 * 0.85 / kPayments));
  for (int count = 0; count < kOrders; ++count)
    run.tpcc.run(tpcc::Type::kNewOrder, run.memory, run.engine, run.random);
  double lines = 0, supplied = 0;
  for (const auto& [key, bytes] : run.engine.table(run.tpcc.ids().order_line)) {
    tpcc::OrderLine row{};
    std::memcpy(&row, bytes.data(), sizeof row);
    const bool placed = (key >> 4 & tpcc::kMaxOrder) > kSmall.customers;
    lines += placed ? 1 : 0;
    supplied += placed && row.supply_warehouse != key >> 36 ? 1 : 0;
  }
  EXPECT_NEAR(lines / kOrders, 9.9, 0.2);  // 5 to 15, and one order in a hundred is rolled back
  EXPECT_NEAR(supplied / lines, 0.01, 5 * std::sqrt(0.01 / lines));
}

TEST(Tpcc, NurandIsTheFormulaOfTheSpecification) {
  Random random(4), again(4);
  std::vector<std::uint64_t> counts(3'000);
  for (int draw = 0; draw < 300'000; ++draw) {
    const std::uint32_t drawn = tpcc::nurand(random, 1023, 259, 1, 3'000);
    const std::uint64_t bits = again.below(1024);
    const std::uint64_t number = 1 + again.below(3'000);
    ASSERT_EQ(drawn, ((bits | number) + 259) % 3'000 + 1);
    ++counts[drawn - 1];
  }
  std::ranges::sort(counts, std::greater{});
  // 10 random bits or-ed into 12: some customers are far more popular than others.
  EXPECT_GT(counts[0], 5U * counts[1'500]);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const tpcc::NurandConstants constants(seed);
    const std::uint32_t delta = constants.run_name - constants.load_name;
    EXPECT_TRUE(delta >= 65 && delta <= 119 && delta != 96 && delta != 112) << delta;
  }
}

TEST(Tpcc, LastNamesAreThreeSyllables) {
  std::array<char, 16> name{};
  tpcc::last_name(371, name);
  EXPECT_STREQ(name.data(), "PRICALLYOUGHT");
}

TEST(OltpWorkloads, RunOnTheHostsMemoryAsWell) {
  memory::HostOptions options;
  options.capacities = memory::Capacities::of(4096, 4096, 0);
  memory::HostMemory memory(options);
  ReferenceEngine<memory::HostMemory> engine;
  tpcc::Tpcc<memory::HostMemory> tpcc(kSmall, 1);
  tpcc.load(memory, engine, 0.66, {});
  Random random(7);
  for (int count = 0; count < 500; ++count)
    tpcc.transaction(memory, engine, random);
  EXPECT_EQ(tpcc.check(memory, engine), "");
}

}  // namespace
}  // namespace pmsim::workloads::oltp
