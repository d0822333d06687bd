#include "engine_buffer_rig.hpp"

namespace pmsim::engines::buffer {

template class BufferManager<memory::SimMemory>;

namespace {

std::vector<BufferCase> cases() {
  std::vector<BufferCase> all;
  for (const std::uint32_t page_bytes : {4096U, 16384U}) {
    const std::string size = page_bytes == 4096 ? "_4k" : "_16k";
    all.push_back({"basic" + size, tiny("basic-nvm-bm", page_bytes, 10, 48, 0)});
    all.push_back({"file" + size, tiny("file-bm", page_bytes, 10, 48, 0)});
    all.push_back({"redirect" + size, tiny("redirect-bm", page_bytes, 10, 48, 0)});
    all.push_back({"ssd" + size, tiny("ssd-bm", page_bytes, 10, 0, 48)});
    BufferConfig config = tiny("three-tier", page_bytes, 10, 7, 48);
    config.admission_entries = 12;
    all.push_back({"three_tier" + size, config});
    config.pointer_swizzling = false;
    all.push_back({"no_swizzling" + size, config});
    config.mini_pages = false;
    all.push_back({"no_mini_pages" + size, config});
    config.pointer_swizzling = true;
    all.push_back({"swizzling_without_mini_pages" + size, config});
    config.cache_line_grained = false;
    all.push_back({"whole_pages" + size, config});
    config = tiny("three-tier", page_bytes, 10, 60, 48);
    config.admission_entries = 30;
    all.push_back({"fits_pmem" + size, config});
    config.meta_on_ssd = true;
    all.push_back({"log_on_ssd" + size, config});
    config = tiny("spitfire", page_bytes, 10, 7, 48);
    config.migration = {0.3, 0.3, 0.5, 0.5};
    all.push_back({"spitfire" + size, config});
    config.migration = {0, 0, 1, 1};
    all.push_back({"spitfire_lazy" + size, config});
    config.migration = {1, 1, 0, 0.1};
    config.cache_line_grained = config.mini_pages = false;
    all.push_back({"spitfire_eager" + size, config});
  }
  // Frames that do not count their users, at the smaller size.
  for (std::size_t at = 0, counting = all.size() / 2; at < counting; ++at) {
    BufferCase same = all[at];
    same.name += "_uncounted";
    same.config.count_fixes = false;
    all.push_back(same);
  }
  BufferConfig config = tiny("basic-nvm-bm", 4096, 10, 48, 0);
  config.cache_line_grained = config.mini_pages = config.pointer_swizzling = true;
  all.push_back({"grained_over_pmem_home", config});
  BufferConfig large = tiny("ssd-bm", 65536, 8, 0, 20);
  all.push_back({"ssd_64k", large});
  large = tiny("basic-nvm-bm", 65536, 8, 20, 0);
  large.cache_line_grained = true;
  all.push_back({"grained_64k", large});
  return all;
}

/// Random operations on a two-level tree of pages (inner pages hold swips to their children at multiples of 8),
/// with everything compared to plain byte arrays.
class RandomUse : public ::testing::TestWithParam<BufferCase> {};

constexpr std::uint32_t kSwips = 6;  ///< of an inner page, from kSwipsAt on
constexpr std::uint32_t kSwipsAt = 512;

struct Forest {
  std::vector<PageId> leaves;
  std::map<PageId, std::vector<PageId>> inner;  ///< parent -> its children
};

/// What a random use has done, so that a test knows that it has met what it is about.
using Done = std::map<std::string, double>;

void run(const BufferConfig& config, std::uint64_t seed, int steps, Done& done) {
  Rig rig(config);
  Random random(seed);
  Forest forest;
  const std::uint64_t most = config.home_pages() - 4;
  for (int count = 0; count < 4; ++count)
    forest.leaves.push_back(random.below(2) == 0 ? rig.create(random) : rig.load(random));
  rig.manager->sync(rig.memory);
  const std::uint32_t bytes = config.page_bytes;
  const auto any_leaf = [&] { return forest.leaves[random.below(forest.leaves.size())]; };
  const auto any_access = [&] {
    const std::uint64_t kind = random.below(4);
    return kind == 0 ? Access::kFull : kind == 1 ? Access::kChanged : Access::kGrained;
  };
  const auto use = [&](FixedPage& page) {
    for (std::uint64_t count = random.below(5); count > 0; --count) {
      const auto length = static_cast<std::uint32_t>(1 + random.below(random.below(3) == 0 ? 600 : 40));
      const auto offset =
          static_cast<std::uint32_t>(kPageHeaderBytes + random.below(bytes - kPageHeaderBytes - length));
      const std::uint64_t kind = random.below(10);
      if (kind < 6) {
        ASSERT_TRUE(rig.same(page, offset, length));
      } else if (kind < 9) {
        rig.overwrite(page, offset, Rig::random_bytes(random, length));
      } else {
        const auto to =
            static_cast<std::uint32_t>(kPageHeaderBytes + random.below(bytes - kPageHeaderBytes - length));
        rig.move(page, to, offset, length);
      }
    }
  };
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const std::uint64_t kind = random.below(100);
    if (random.below(500) == 0) {
      rig.restart();
    } else if (kind < 10 && rig.pages.size() < most) {
      forest.leaves.push_back(rig.create(random));
    } else if (kind < 13 && forest.leaves.size() >= kSwips && forest.inner.size() < 4 &&
               rig.pages.size() < most) {
      // A new parent of random leaves that have none.
      std::vector<PageId> children;
      for (std::uint32_t count = 0; count < kSwips; ++count) {
        const std::size_t at = random.below(forest.leaves.size());
        children.push_back(forest.leaves[at]);
        forest.leaves.erase(forest.leaves.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const PageId parent = rig.create(random);
      FixedPage page = rig.manager->fix_page(rig.memory, parent, Access::kFull);
      Bytes swips(kSwips * 8);
      std::memcpy(swips.data(), children.data(), swips.size());
      rig.overwrite(page, kSwipsAt, swips);
      rig.manager->unfix(rig.memory, page);
      rig.manager->unpin_all(rig.memory);
      forest.inner[parent] = children;
      if (forest.leaves.empty())
        forest.leaves.push_back(rig.create(random));
    } else if (kind < 50 && !forest.inner.empty()) {
      // Down from a parent, perhaps to two children at once.
      auto chosen = forest.inner.begin();
      std::advance(chosen, random.below(forest.inner.size()));
      FixedPage parent = rig.manager->fix_page(rig.memory, chosen->first, Access::kFull);
      for (std::uint64_t count = 1 + random.below(3); count > 0; --count) {
        const auto which = static_cast<std::uint32_t>(random.below(kSwips));
        FixedPage child = rig.manager->fix_child(rig.memory, parent, kSwipsAt + which * 8, any_access());
        ASSERT_EQ(child.id, chosen->second[which]);
        FixedPage again = rig.manager->fix_page(rig.memory, child.id, any_access());
        use(child);
        use(again);
        rig.manager->unfix(rig.memory, child);
        use(again);
        rig.manager->unfix(rig.memory, again);
      }
      if (random.below(4) == 0) {
        // Two swips change places: they are ids while they do.
        rig.manager->unswizzle_children(rig.memory, parent, kSwipsAt, kSwips);
        std::swap(chosen->second.front(), chosen->second.back());
        Bytes swips(kSwips * 8);
        std::memcpy(swips.data(), chosen->second.data(), swips.size());
        rig.overwrite(parent, kSwipsAt, swips);
      }
      rig.manager->unfix(rig.memory, parent);
      rig.manager->unpin_all(rig.memory);
    } else if (kind >= 50 && kind < 51 && !forest.inner.empty()) {
      // The parent is released; its children have none.
      auto chosen = forest.inner.begin();
      std::advance(chosen, random.below(forest.inner.size()));
      FixedPage parent = rig.manager->fix_page(rig.memory, chosen->first, Access::kFull);
      rig.manager->unswizzle_children(rig.memory, parent, kSwipsAt, kSwips);
      rig.manager->release(rig.memory, parent);
      rig.manager->unpin_all(rig.memory);
      forest.leaves.insert(forest.leaves.end(), chosen->second.begin(), chosen->second.end());
      rig.pages.erase(chosen->first);
      forest.inner.erase(chosen);
    } else if (kind >= 54 && kind < 58 && forest.leaves.size() > 4) {
      const std::size_t at = random.below(forest.leaves.size());
      FixedPage page = rig.manager->fix_page(rig.memory, forest.leaves[at], any_access());
      rig.manager->release(rig.memory, page);
      rig.manager->unpin_all(rig.memory);
      rig.pages.erase(forest.leaves[at]);
      forest.leaves.erase(forest.leaves.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (kind == 59) {
      rig.checkpoint();
    } else {
      const PageId id = any_leaf();
      FixedPage page = rig.manager->fix_page(rig.memory, id, any_access());
      FixedPage copy = page;
      use(copy);
      use(page);
      rig.manager->unfix(rig.memory, page);
      rig.manager->unpin_all(rig.memory);
    }
    if (::testing::Test::HasFatalFailure())
      return;
    if (step % 16 == 0) {
      ASSERT_EQ(rig.check(), "");
    }
  }
  for (const auto& [id, content] : rig.pages) {
    if (!forest.inner.contains(id)) {
      ASSERT_TRUE(rig.same(id));
    }
  }
  rig.restart();
  ASSERT_EQ(rig.check(), "");
  for (const auto& [id, content] : rig.pages)
    ASSERT_TRUE(rig.same(id)) << "after the restart";
  ASSERT_EQ(rig.check(), "");
  for (const auto& [name, value] : rig.done())
    done[name] += value;
}

/// The events that a configuration can meet at all.
std::vector<std::string> expected(const BufferConfig& config) {
  std::vector<std::string> names{"dram_hits",      "dram_misses",     "page_table_lookups",
                                 "evictions_dram", "pages_allocated", "pages_released"};
  const auto add = [&names](bool when, std::initializer_list<const char*> more) {
    if (when)
      names.insert(names.end(), more.begin(), more.end());
  };
  const bool scarce = config.pmem_cache && config.pmem_frames() < config.home_pages() / 2;
  add(config.pmem_bytes != 0,
      {"pages_loaded_pmem", "pages_written_pmem", "lines_loaded", "lines_written_back", "micro_log_writes"});
  add(config.home == Home::kSsd, {"pages_written_ssd"});
  add(config.home == Home::kSsd && (!config.direct || config.migration[2] < 1), {"pages_loaded_ssd"});
  add(config.direct && config.migration[2] > 0, {"pages_ssd_to_pmem"});
  add(config.pmem_cache, {"admissions"});
  add(scarce, {"evictions_pmem"});
  add(config.direct ? config.migration[3] < 1 : scarce, {"denials"});
  add(config.pointer_swizzling, {"swizzles", "unswizzles", "swizzled_fixes"});
  const bool minis = config.mini_pages && (!config.direct || config.migration[0] > 0);
  add(minis, {"mini_allocated", "promotions"});
  add(config.direct && config.migration[0] < 1, {"direct_fixes", "direct_writes"});
  return names;
}

TEST_P(RandomUse, EqualsPlainByteArrays) {
  Done done;
  const int rounds = GetParam().config.page_bytes == 4096 ? 12 : 4;
  for (int seed = 1; seed <= rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run(GetParam().config, static_cast<std::uint64_t>(seed), 1200, done);
    if (HasFatalFailure())
      return;
  }
  for (const std::string& name : expected(GetParam().config))
    EXPECT_GT(done[name], 0) << name;
  const BufferConfig& config = GetParam().config;
  if (config.pmem_cache && !config.direct && config.pmem_frames() >= config.home_pages()) {
    EXPECT_EQ(done["denials"], 0) << "PMem has a frame for every page";
    EXPECT_EQ(done["evictions_pmem"], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(BufferManager, RandomUse, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pmsim::engines::buffer
