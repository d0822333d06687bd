#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine_model.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::engines::model {

/// An engine without a buffer on 256 pages, with half a leaf of rows: what one transaction adds to its
/// counters.
class CountedEngine : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kPayload = 56, kKey = 8;

  explicit CountedEngine(const char* name, const char* leaf_layout = "sorted") {
    options_.engine = name;
    options_.leaf_layout = leaf_layout;
    options_.page_bytes = 4096;
    options_.pmem_bytes = 1 << 20;
    options_.log_bytes = 1 << 20;
    engine_ = engine_named<SimMemory>(name).create(memory_, options_);
    for (std::uint64_t key = 0; key < 30; ++key)
      rows_[key * 2] = Payload(kPayload, std::byte{1});
    MapSource source(rows_);
    table_ = engine_->load(memory_, {"t", kKey, kPayload}, source, 1.0);  // 30 of 62 rows of one leaf
  }

  /// What `operation` adds to a counter, its transaction included.
  template <typename Operation>
  double cost(const std::string& counter, Operation&& operation) {
    const double before = engine_->counters().at(counter);
    engine_->begin(memory_);
    operation();
    engine_->commit(memory_);
    EXPECT_EQ(engine_->check(memory_), "");
    return engine_->counters().at(counter) - before;
  }
  /// Fences of a transaction with one operation.
  template <typename Operation>
  std::size_t fences(Operation&& operation) {
    memory::Stream stream;
    memory_.attach(stream);
    engine_->begin(memory_);
    operation();
    engine_->commit(memory_);
    memory_.detach();
    std::size_t count = 0;
    for (std::size_t op = 0; op < stream.size(); ++op)
      count += stream[op].kind == memory::OpKind::kSfence ? 1 : 0;
    return count;
  }
  bool insert(std::uint64_t key) {
    return engine_->insert(memory_, table_, key, Payload(kPayload, std::byte{2}));
  }
  /// The rows are those that were loaded, and no other.
  void expect_as_loaded() {
    EXPECT_EQ(engine_->check(memory_), "");
    EXPECT_EQ(all_rows(memory_, *engine_, table_, kPayload), rows_);
  }

  SimMemory memory_;
  EngineOptions options_;
  Rows rows_;
  std::unique_ptr<Engine<SimMemory>> engine_;
  TableId table_ = 0;
};

}  // namespace pmsim::engines::model
