#include "pmsim/machine/params.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/machine/page_table.hpp"
#include "pmsim/machine/tlb.hpp"

namespace pmsim::machine {
namespace {

/// The least machine that is allowed: every cache and module present and consistent.
PlatformParams small_machine() {
  PlatformParams params;
  params.l1.size = 32 * 1024;
  params.l2.size = 1024 * 1024;
  params.llc.size = 16 * 1024 * 1024;
  params.dram.capacity = int64_t{1} << 30;
  params.pmem.dimms = params.controller.channels;
  params.pmem.capacity = int64_t{1} << 32;
  return params;
}

std::string rejection(const PlatformParams& params) {
  try {
    validate(params);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Params, EveryFieldIsDeclaredOnceWithMeaningAndRange) {
  std::set<std::string> names;
  for (const Field& field : fields()) {
    const std::string name = std::string(field.section) + "." + std::string(field.name);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_FALSE(field.meaning.empty()) << name;
    EXPECT_LT(field.minimum, field.maximum) << name;
  }
}

/// Catches a row whose accessor was copied from its neighbour and leads to another parameter.
TEST(Params, EveryFieldLeadsToAParameterOfItsOwn) {
  PlatformParams params;
  std::set<const int64_t*> places;
  for (const Field& field : fields()) {
    EXPECT_TRUE(places.insert(&field.ref(params)).second) << field.section << "." << field.name;
  }
  EXPECT_EQ(places.size() * sizeof(int64_t), sizeof(PlatformParams)) << "a parameter has no row in the table";
}

TEST(Params, ASmallMachineIsAccepted) { EXPECT_EQ(rejection(small_machine()), "accepted"); }

TEST(Params, BothEndsOfEveryRangeAreEnforced) {
  for (const Field& field : fields()) {
    const std::string name = std::string(field.section) + "." + std::string(field.name) + " = ";
    for (const int64_t value : {field.minimum - 1, field.maximum + 1}) {
      PlatformParams params = small_machine();
      field.ref(params) = value;
      EXPECT_EQ(rejection(params), name + std::to_string(value) + ": must be between " +
                                       std::to_string(field.minimum) + " and " + std::to_string(field.maximum));
    }
  }
}

TEST(Params, NoDramReachesThePageTablesAndTheyReachNothingElse) {
  const std::uint64_t dram = memory::medium_base(memory::Medium::kDram);
  const std::uint64_t pmem = memory::medium_base(memory::Medium::kPmem);
  const auto capacity = std::ranges::find_if(
      fields(), [](const Field& f) { return f.section == "dram" && f.name == "capacity"; });
  EXPECT_LE(dram + static_cast<std::uint64_t>(capacity->maximum), kPageTables);
  for (const std::int64_t dram_page : {4 << 10, 2 << 20}) {
    TlbParams tlb;
    tlb.dram_page_size = dram_page;
    const PageNumbers pages(tlb);
    for (const std::uint64_t last : {pmem - 1, pmem + memory::kMediumBytes - 1}) {
      EXPECT_LT(page_table_line(pages.of(last)), kUpperTables / memory::kLineBytes);
      EXPECT_LT(upper_table_line(pages.of(last)), pmem / memory::kLineBytes);
    }
  }
}

TEST(Params, RulesBetweenFieldsNameTheFieldAndTheRemedy) {
  PlatformParams params = small_machine();
  params.pmem.dimms = params.controller.channels + 1;
  EXPECT_EQ(rejection(params), "pmem.dimms: more modules than controller.channels; a channel takes one module");

  params = small_machine();
  params.pmem.interleave = params.pmem.block_size * 3 / 2;
  EXPECT_EQ(rejection(params), "pmem.interleave: must be a multiple of pmem.block_size");
  params = small_machine();
  params.pmem.block_size = 4096;
  EXPECT_EQ(rejection(params), "accepted");
  // Less than a block had been shifted by -1, and what is no power of two had silently been the one below.
  for (const int64_t region : {int64_t{256}, int64_t{2048}, int64_t{3 * 4096}, int64_t{8192 + 64}}) {
    params.pmem.wear_region = region;
    EXPECT_EQ(rejection(params), "pmem.wear_region: must be pmem.block_size times a power of two");
  }
  params = small_machine();
  params.controller.dram_interleave = 100;
  EXPECT_EQ(rejection(params), "controller.dram_interleave: must be a multiple of 64 B, a line");

  params = small_machine();
  params.controller.memory_mode = 1;
  params.dram.capacity = 0;
  EXPECT_EQ(rejection(params), "controller.memory_mode: needs both dram.capacity and pmem.dimms");
}

}  // namespace
}  // namespace pmsim::machine
