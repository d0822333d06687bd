#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine_model.hpp"
#include "pmsim/memory/section.hpp"
#include "pmsim/memory/stream.hpp"

/// Where the time of every engine goes: none may log, or move pages, without saying so.

namespace pmsim::engines::model {
namespace {

using memory::Section;

constexpr std::uint32_t kPairBytes = 8;  // all that fptree takes

class EngineSections : public ::testing::TestWithParam<std::string> {
 protected:
  EngineSections() {
    options_.engine = GetParam();
    options_.page_bytes = 4096;
    options_.dram_bytes = options_.pmem_bytes = 4 << 20;
    options_.ssd_bytes = options_.engine == "main-memory" ? 0 : 8 << 20;
    options_.log_bytes = 1 << 20;
    memory_.mark_sections();
    for (std::uint64_t key = 0; key < 600; ++key)
      rows_[key] = Payload(kPairBytes, std::byte{1});
    MapSource source(rows_);
    engine_ = engine_named<SimMemory>(options_.engine).create(memory_, options_);
    table_ = engine_->load(memory_, {"t", 8, kPairBytes}, source, 0.66);
  }

  /// The sections that `work` enters.
  template <typename Work>
  std::set<Section> entered(Work&& work) {
    memory::Stream stream;
    memory_.attach(stream);
    work();
    memory_.detach();
    std::set<Section> sections;
    Section last = Section::kWork;
    for (const memory::MicroOp& op : std::span(stream.data(), stream.size())) {
      if ((op.flags & memory::kEntersSection) != 0 && op.kind == memory::OpKind::kCompute)
        sections.insert(last = static_cast<Section>(op.site));
    }
    EXPECT_EQ(last, Section::kWork) << "a section is left as it was entered";
    return sections;
  }
  /// Pages that have been written to a lower tier.
  [[nodiscard]] double written() const {
    const auto counters = engine_->counters();
    const auto of = [&](const char* name) { return counters.contains(name) ? counters.at(name) : 0.0; };
    return of("pages_written_pmem") + of("pages_written_ssd");
  }
  /// Two rows, since fptree logs nothing for one.
  void update() {
    engine_->begin(memory_);
    for (const std::uint64_t key : {300, 301})
      EXPECT_TRUE(engine_->update(memory_, table_, key, 0, Payload(kPairBytes, std::byte{2})));
    engine_->commit(memory_);
  }

  SimMemory memory_;
  EngineOptions options_;
  Rows rows_;
  std::unique_ptr<Engine<SimMemory>> engine_;
  TableId table_ = 0;
};

TEST_P(EngineSections, ATransactionThatChangesSomethingLogs) {
  EXPECT_TRUE(entered([&] { update(); }).contains(Section::kLog));
}

TEST_P(EngineSections, ACheckpointThatWritesPagesMovesThem) {
  update();
  const double before = written();
  const std::set<Section> sections = entered([&] { engine_->checkpoint(memory_); });
  EXPECT_EQ(sections.contains(Section::kPages), written() > before);
}

TEST_P(EngineSections, LookupsOfWhatIsInDramAreWork) {
  const auto look_up = [&] {
    Payload found(kPairBytes);
    engine_->begin(memory_);
    EXPECT_TRUE(engine_->read(memory_, table_, 300, 0, found));
    engine_->commit(memory_);
  };
  look_up();
  EXPECT_EQ(entered(look_up), std::set<Section>{});
}

INSTANTIATE_TEST_SUITE_P(All, EngineSections, ::testing::ValuesIn(engine_names<SimMemory>()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace pmsim::engines::model
