#include "engine_buffer_rig.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::engines::buffer {
namespace {

// The debugging mode (dissertation, appendix A.6), which all rigs have, unless a test takes it away.

BufferConfig pages(bool mini) {
  BufferConfig config = three_tier();
  config.mini_pages = mini;
  return config;
}

/// What unfix() says about a page after `misuse`, or nothing.
template <typename Misuse>
std::string said_about(const BufferConfig& config, Misuse&& misuse) {
  OnPmem rig(config, 4);
  FixedPage page = rig.manager->fix_page(rig.memory, 2, Access::kGrained);
  misuse(rig, page);
  try {
    rig.manager->unfix(rig.memory, page);
  } catch (const SimulationError& error) {
    return error.what();
  }
  return {};
}

constexpr std::uint32_t kLine7 = 7 * kLineBytes;

void write_without_asking(Rig& rig, FixedPage& page) {
  rig.memory.store<std::uint64_t>(rig.manager->resident(rig.memory, page, kLine7, 8), 1);
}

TEST(Debugging, AChangeThatNobodyHasMarkedIsFoundWhenThePageIsUnfixed) {
  for (const bool mini : {false, true}) {
    EXPECT_EQ(said_about(pages(mini), write_without_asking),
              "pmsim bug: page 2 is unfixed: clean line 7 differs from PMem");
    // It would have been lost when the page is evicted. With the mark nothing is wrong.
    EXPECT_EQ(
        said_about(pages(mini),
                   [](Rig& rig, FixedPage& page) {
                     static_cast<void>(rig.manager->writable(rig.memory, page, kLine7, 8, Change::kOverwrite));
                     write_without_asking(rig, page);
                   }),
        "");
  }
}

TEST(Debugging, PagesWithoutMasksAreComparedToo) {
  EXPECT_EQ(said_about(tiny("basic-nvm-bm", 4096, 8, 16, 0), write_without_asking),
            "pmsim bug: page 2 is unfixed: clean line 7 differs from PMem");
}

TEST(Debugging, AWriteToALineThatIsNotHereIsFoundWhenThePageIsUnfixed) {
  const auto beyond = [](Rig& rig, FixedPage& page) {
    const Address here = rig.manager->resident(rig.memory, page, kLine7, 8);
    rig.memory.store<std::uint64_t>(here + kLineBytes, 1);
  };
  EXPECT_EQ(said_about(pages(false), beyond),
            "pmsim bug: page 2 is unfixed: line 8 has been written, but is not here");
  EXPECT_EQ(said_about(pages(true), beyond),
            "pmsim bug: page 2 is unfixed: slot 1 of a mini page has been written, but holds no line");
}

TEST(Debugging, AWriteThroughAnAddressFromBeforeAPromotionIsFound) {
  EXPECT_EQ(said_about(pages(true),
                       [](Rig& rig, FixedPage& page) {
                         const Address before =
                             rig.manager->writable(rig.memory, page, kLine7, 8, Change::kOverwrite);
                         static_cast<void>(rig.manager->resident(rig.memory, page, 0, 17 * kLineBytes));
                         ASSERT_EQ(rig.counts().promotions, 1U);
                         rig.memory.store<std::uint64_t>(before, 1);
                       }),
            "pmsim bug: page 2 is unfixed: slot 1 of a mini page has been written, but holds no line");
}

TEST(Debugging, ALineThatIsNotHereReadsAsNonsenseThoughTheFrameHasHeldItBefore) {
  for (const bool debug : {true, false}) {
    BufferConfig config = pages(false);
    config.debug_pages = debug;
    OnPmem rig(config, 32);
    // All frames have held all lines of pages.
    for (PageId id = 0; id < 24; ++id)
      ASSERT_TRUE(rig.same(id));
    FixedPage page = rig.manager->fix_page(rig.memory, 28, Access::kGrained);
    blocks::page::Line found;
    rig.memory.read(rig.manager->resident(rig.memory, page, kLine7, 8) + kLineBytes, found);
    EXPECT_EQ(found == kForgotten, debug);
    EXPECT_TRUE(rig.same(page, kLine7 + kLineBytes, 8)) << "asked for, it is here";
    rig.manager->unfix(rig.memory, page);
  }
}

/// As a node of a tree: unfixes its page whatever happens.
struct Fixed {
  Rig& rig;
  FixedPage page;
  ~Fixed() noexcept(false) { rig.manager->unfix(rig.memory, page); }
};

// Ctrl-C comes from whatever micro-operation is the next to be polled, lines half way into their frame
// included.
TEST(Debugging, ARunThatIsStoppedInTheMiddleOfAPageSaysSoAndNothingElse) {
  for (std::size_t before = 1; before < 80; ++before) {
    BufferConfig config = pages(false);
    config.debug_pages = before % 2 == 0;
    OnPmem rig(config, 4);
    memory::Stream stream;
    for (std::size_t op = before; op < memory::Stream::kPollEvery; ++op)
      stream.push(memory::OpKind::kCompute, 0, 0);
    stream.on_poll([] { throw std::runtime_error("stopped"); });
    rig.memory.attach(stream);
    std::string said;
    try {
      const Fixed fixed{rig, rig.manager->fix_page(rig.memory, 2, Access::kGrained)};
      FixedPage page = fixed.page;
      static_cast<void>(rig.manager->resident(rig.memory, page, kLine7, 40 * kLineBytes));
    } catch (const std::exception& error) {
      said = error.what();
    }
    EXPECT_EQ(said, "stopped") << before << " micro-operations before";
  }
}

TEST(Debugging, ARunTakesTheSameDecisionsAndEmitsTheSameMicroOperations) {
  std::vector<std::vector<memory::MicroOp>> streams;
  std::vector<std::map<std::string, double>> counters;
  for (const bool debug : {true, false}) {
    BufferConfig config = three_tier(8, 12, 64);
    config.debug_pages = debug;
    OnPmem rig(config, 24);
    Random random(3);
    memory::Stream stream;
    rig.memory.attach(stream);
    for (int step = 0; step < 400; ++step) {
      FixedPage page = rig.manager->fix_page(rig.memory, random.below(24),
                                             random.below(8) == 0 ? Access::kFull : Access::kGrained);
      const auto line = static_cast<std::uint32_t>(1 + random.below(250));
      ASSERT_TRUE(rig.same(page, line * kLineBytes, 8));
      if (random.below(4) == 0)
        rig.overwrite(page, line * kLineBytes, Bytes(100, std::byte{7}));
      rig.manager->unfix(rig.memory, page);
      rig.manager->unpin_all(rig.memory);
    }
    rig.memory.detach();
    EXPECT_EQ(rig.check(), "");
    streams.emplace_back(stream.data(), stream.data() + stream.size());
    counters.push_back(rig.done());
  }
  EXPECT_GT(counters[0]["mini_allocated"] * counters[0]["promotions"] * counters[0]["evictions_pmem"], 0);
  EXPECT_EQ(counters[0], counters[1]);
  ASSERT_EQ(streams[0].size(), streams[1].size());
  EXPECT_EQ(0, std::memcmp(streams[0].data(), streams[1].data(), streams[0].size() * sizeof(memory::MicroOp)));
}

}  // namespace
}  // namespace pmsim::engines::buffer
