#include <deque>

#include "engine_buffer_rig.hpp"

namespace pmsim::engines::buffer {
namespace {

// Clock, against a second implementation: a queue, in which who was touched goes round once more. (Another one,
// by other people, is in tests/test_buffer_clock.py.)

TEST(Clock, HitsEqualThoseOfASecondChanceQueue) {
  constexpr std::uint64_t kFrames = 16;
  Rig rig(tiny("ssd-bm", 4096, kFrames, 0, 64));
  Random random(4);
  for (int count = 0; count < 64; ++count)
    rig.load(random);
  rig.manager->sync(rig.memory);
  struct Entry {
    PageId id;
    bool touched;
  };
  std::deque<Entry> queue;
  for (int step = 0; step < 20'000; ++step) {
    const PageId id = std::min(random.below(64), random.below(64));
    const std::uint64_t hits = rig.counts().dram_hits;
    rig.touch(id, Access::kFull);
    const auto at = std::ranges::find(queue, id, &Entry::id);
    ASSERT_EQ(rig.counts().dram_hits - hits, at != queue.end() ? 1U : 0U) << "step " << step;
    if (at != queue.end()) {
      at->touched = true;
      continue;
    }
    while (queue.size() == kFrames) {
      Entry front = queue.front();
      queue.pop_front();
      if (front.touched)
        queue.push_back({front.id, false});
    }
    queue.push_back({id, true});  // loading a page is touching it
  }
}

// Options.

TEST(Config, RefusesWhatCannotBeAndNamesTheOption) {
  const auto message = [](auto change, const std::string& engine = "three-tier") {
    BufferConfig config = tiny(engine, kPage, 8, 8, 8);
    change(config);
    try {
      SimMemory memory;
      const Rig::Manager manager(memory, config);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message([](BufferConfig& config) { config.dram_bytes = 100'000; }).find("dram_bytes"),
            std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.ssd_bytes = 0; }).find("ssd_bytes"), std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.pmem_bytes = 0; }).find("pmem_bytes"), std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.page_bytes = 12'000; }).find("page_bytes"),
            std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.page_bytes = 32768; }).find("mini_pages"),
            std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.cache_line_grained = false; }).find("cache_line_grained"),
            std::string::npos);
  EXPECT_NE(message([](BufferConfig& config) { config.migration[2] = 1.5; }).find("migration"),
            std::string::npos);
  EXPECT_EQ(message([](BufferConfig&) {}), "accepted");
}

}  // namespace
}  // namespace pmsim::engines::buffer
