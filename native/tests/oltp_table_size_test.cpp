#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "pmsim/engines/btree/bulk_loader.hpp"
#include "pmsim/engines/fptree/engine.hpp"
#include "pmsim/engines/fptree/loading.hpp"
#include "pmsim/engines/fptree/restart.hpp"
#include "pmsim/engines/nvm_direct_store.hpp"
#include "pmsim/engines/tree_engine.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/workloads/oltp/table_size.hpp"

namespace pmsim::workloads::oltp {
namespace {

using engines::EngineOptions;
using engines::PageId;
using engines::TableSpec;
using engines::btree::Layout;
using engines::btree::NodeKind;
using memory::SimMemory;

const TableSpec kYcsb{"usertable", 4, 1000};
const TableSpec kPairs{"pairs", 8, 8};

class Rows final : public engines::RowSource {
 public:
  explicit Rows(std::uint64_t rows) : rows_(rows) {}
  [[nodiscard]] std::uint64_t rows() const override { return rows_; }
  std::uint64_t next(std::span<std::byte> payload) override {
    std::ranges::fill(payload, std::byte{1});
    return next_++;
  }

 private:
  std::uint64_t rows_;
  std::uint64_t next_ = 0;
};

/// A store that only counts.
struct Counted {
  PageId pages = 0;
  [[nodiscard]] PageId next_load() const noexcept { return pages; }
  PageId load(SimMemory&, std::span<const std::byte>) noexcept { return pages++; }
};

std::uint64_t pages_loaded(std::uint64_t rows, const TableSpec& table, const EngineOptions& options,
                           double fill) {
  SimMemory memory;
  Counted store;
  const auto layout = Layout::of(table, options.page_bytes,
                                 options.leaf_layout == "hash" ? NodeKind::kHashLeaf : NodeKind::kSortedLeaf);
  Rows source(rows);
  if (table.key_bytes == 4)
    std::ignore =
        engines::btree::BulkLoader<Counted, std::uint32_t, SimMemory>(memory, store, layout, fill).load(source);
  else
    std::ignore =
        engines::btree::BulkLoader<Counted, std::uint64_t, SimMemory>(memory, store, layout, fill).load(source);
  return store.pages;
}

TEST(TableSize, IsThatOfTheTreeThatIsLoaded) {
  constexpr std::uint64_t kCatalog = 1;
  for (const std::uint32_t page_bytes : {4096U, 16384U}) {
    for (const char* leaves : {"sorted", "hash"}) {
      for (const double fill : {0.1, 0.5, 0.66, 0.9, 1.0}) {
        for (const TableSpec& table : {kYcsb, kPairs, TableSpec{"facts", 8, page_bytes / 5}}) {
          for (const std::uint64_t pages : {3U, 37U, 1000U}) {
            EngineOptions options;
            options.page_bytes = page_bytes;
            options.leaf_layout = leaves;
            const auto layout =
                Layout::of(table, page_bytes, *leaves == 'h' ? NodeKind::kHashLeaf : NodeKind::kSortedLeaf);
            const std::uint64_t rows = rows_of_size(pages * page_bytes + 100, table, options, fill);
            const std::string said = table.name + ", " + leaves + ", fill " + std::to_string(fill) + ", " +
                                     std::to_string(pages) + " pages of " + std::to_string(page_bytes);
            EXPECT_LE(pages_loaded(rows, table, options, fill) + kCatalog, pages) << said;
            EXPECT_GT(pages_loaded(rows + layout.leaf_capacity, table, options, fill) + kCatalog, pages)
                << said;
          }
        }
      }
    }
  }
}

TEST(TableSize, OfNothingIsARow) {
  EXPECT_EQ(rows_of_size(0, kYcsb, {}, 0.66), 1U);
  EXPECT_EQ(rows_of_size(16384, kYcsb, {}, 0.66), 1U) << "there is the catalog";
  EngineOptions fptree;
  fptree.engine = "fptree";
  EXPECT_EQ(rows_of_size(0, kPairs, fptree, 0.66), 1U);
}

// 6.5 million tuples are "roughly 10 GB" at a load factor of 0.66, 100 million pairs 2.5 GB.
TEST(TableSize, AgreesWithThePaper) {
  const auto millions = [](std::uint64_t bytes, const TableSpec& table, double fill) {
    return static_cast<double>(rows_of_size(bytes, table, {}, fill)) / 1e6;
  };
  EXPECT_NEAR(millions(10'000'000'000, kYcsb, 0.66), 6.5, 0.1);
  EXPECT_NEAR(millions(6'700'000'000, kYcsb, 1), 6.5, 0.1);
  EXPECT_NEAR(millions(2'500'000'000, kPairs, 0.66), 100, 5);
}

/// Whether an engine with so much PMem has room for the rows.
template <typename Engine>
bool holds(const EngineOptions& options, const TableSpec& table, std::uint64_t rows, double fill) {
  SimMemory memory;
  Engine engine(memory, options);
  Rows source(rows);
  try {
    engine.load(memory, table, source, fill);
  } catch (const CapacityError&) {
    return false;
  }
  return true;
}

TEST(TableSize, FillsTheTierThatItIsThatOf) {
  EngineOptions options;
  options.dram_bytes = options.pmem_bytes = 8 << 20;
  options.log_bytes = 1 << 20;
  using NvmDirect = engines::TreeEngine<SimMemory, engines::NvmDirectStore<SimMemory>>;
  options.engine = "nvm-direct";
  for (const double fill : {0.66, 1.0}) {
    const std::uint64_t rows = rows_of_size(options.pmem_bytes, kYcsb, options, fill);
    EXPECT_TRUE((holds<NvmDirect>(options, kYcsb, rows, fill)));
    EXPECT_FALSE((holds<NvmDirect>(options, kYcsb, rows + 16, fill)));
  }
  using FpTree = engines::fptree::FpTreeEngine<SimMemory>;
  options.engine = "fptree";
  const std::uint64_t pairs = rows_of_size(options.pmem_bytes, kPairs, options, 0.66);
  EXPECT_TRUE((holds<FpTree>(options, kPairs, pairs, 0.66)));
  EXPECT_FALSE((holds<FpTree>(options, kPairs, pairs + 56, 0.66)));
}

}  // namespace
}  // namespace pmsim::workloads::oltp
