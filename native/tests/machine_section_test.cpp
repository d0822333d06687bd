#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "machine_harness.hpp"
#include "pmsim/memory/section.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::machine {
namespace {

using memory::Section;

memory::MicroOp work(std::uint64_t cycles) { return {cycles, 1, memory::OpKind::kCompute, 0, 0}; }
memory::MicroOp enter(Section section) {
  return {0, 0, memory::OpKind::kCompute, memory::kEntersSection, static_cast<memory::Site>(section)};
}

TEST(Sections, TimeIsThatOfTheSectionInWhichItPasses) {
  const PlatformParams params = plain_machine();
  const Picoseconds cycle = kSecond / params.core.frequency;
  const auto counted =
      run(params, {work(1000), enter(Section::kPages), work(3000), enter(Section::kLog), work(500),
                   enter(Section::kPages), work(200), enter(Section::kWork), work(7), begin()})
          .counters;
  EXPECT_EQ(counted.work_ps, 1000 * cycle);
  EXPECT_EQ(counted.pages_ps, 3200 * cycle);
  EXPECT_EQ(counted.log_ps, 500 * cycle);
}

// A section lasts until what is in it has retired: the miss is its own, although the front end runs ahead.
TEST(Sections, AMissBelongsToTheSectionOfItsLoad) {
  const PlatformParams params = plain_machine();
  const std::uint64_t far = memory::medium_base(memory::Medium::kPmem) + (1 << 20);
  const auto counted = run(params, {enter(Section::kPages), load(far), enter(Section::kLog), work(1),
                                    enter(Section::kWork), begin()})
                           .counters;
  EXPECT_GT(counted.pages_ps, params.pmem.media_read_latency);
  EXPECT_LE(counted.log_ps, 2 * kSecond / params.core.frequency);
}

TEST(Sections, MarksChangeNoTime) {
  const PlatformParams params = plain_machine();
  const std::uint64_t base = memory::medium_base(memory::Medium::kPmem);
  Script::Ops plain;
  Script::Ops marked;
  for (std::uint64_t at = 0; at < 200; ++at) {
    const auto section = static_cast<Section>(at % memory::kSections);
    for (const memory::MicroOp& op : {load(base + at * 4096), store(base + at * 4096 + 64), work(5)}) {
      plain.push_back(op);
      marked.push_back(op);
    }
    marked.push_back(enter(section));
  }
  EXPECT_EQ(time_of(params, {}, plain), time_of(params, {}, marked));
}

TEST(Sections, AreMarkedWhereAskedForAndOnlyWhereTheyChange) {
  for (const bool asked : {false, true}) {
    memory::SimMemory memory;
    if (asked)
      memory.mark_sections();
    memory::Stream stream;
    memory.attach(stream, 0);
    {
      const memory::InSection pages(memory, Section::kPages);
      const memory::InSection again(memory, Section::kPages);
      const memory::InSection log(memory, Section::kLog);
    }
    std::vector<memory::Site> entered;
    for (const memory::MicroOp& op : std::span(stream.data(), stream.size()))
      entered.push_back(op.site);
    EXPECT_EQ(entered, asked ? (std::vector<memory::Site>{1, 2, 1, 0}) : std::vector<memory::Site>{});
  }
}

TEST(Sections, OneThatDoesNotExistIsRefused) {
  EXPECT_THROW(run(plain_machine(), {enter(static_cast<Section>(memory::kSections))}), ConfigError);
}

// Ctrl-C comes by a stream's poll, which throws out of whatever emits: out of a section's end, too, or while a
// section is left because of it.
TEST(Sections, LetTheirStreamBeStopped) {
  struct Stopped {};
  for (const bool at_the_end : {true, false}) {
    memory::SimMemory memory;
    memory.mark_sections();
    memory::Stream stream;
    memory.attach(stream, 0);
    stream.on_poll([] { throw Stopped(); });
    for (std::size_t op = 1; op < memory::Stream::kPollEvery; ++op)
      memory.compute(1, 1);
    EXPECT_THROW(
        {
          const memory::InSection pages(memory, Section::kPages);
          if (!at_the_end)
            memory.compute(1, 1);
        },
        Stopped);
    EXPECT_EQ(memory.enter(Section::kWork), Section::kWork);
  }
}

}  // namespace
}  // namespace pmsim::machine
