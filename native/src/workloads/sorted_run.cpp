#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/blocks/run/buffers.hpp"
#include "pmsim/blocks/run/merge.hpp"
#include "pmsim/blocks/run/move.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/workloads/load_warmup.hpp"
#include "pmsim/workloads/options/memory.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

using namespace blocks::run;
using blocks::undo::UndoLog;
using memory::Medium;

constexpr std::int64_t kLargestRun = std::int64_t{1} << 22;
constexpr std::int64_t kMostCycles = 1'000'000;
/// The array of trees, in sizes of the last-level cache: "more than double of the LLC" (section 5.1).
constexpr double kArrayOverCache = 2.2;

struct Options {
  bool merges;
  std::uint64_t pairs;  ///< of a run of level 0
  bool sorted_buffer;
  FailureAtomicity atomicity;
  MergeAlgorithm algorithm;
  MergeTarget target;
  bool duplicates;  ///< all runs of a level have the same keys; else no two have one in common
  Medium medium;
  std::uint32_t library_cycles;
};

Options options_from(Parameters& parameters) {
  const std::string atomicity = parameters.choice("failure_atomicity", {"none", "individual", "transaction"});
  return {
      .merges = parameters.choice("operation", {"move", "merge"}) == "merge",
      .pairs = static_cast<std::uint64_t>(parameters.number("run_size", kPairBytes, kLargestRun)) / kPairBytes,
      .sorted_buffer = parameters.choice("c0", {"sorted", "unsorted"}) == "sorted",
      .atomicity = atomicity == "none"         ? FailureAtomicity::kNone
                   : atomicity == "individual" ? FailureAtomicity::kIndividual
                                               : FailureAtomicity::kTransaction,
      .algorithm = parameters.choice("algorithm", {"two-way", "k-way"}) == "two-way" ? MergeAlgorithm::kTwoWay
                                                                                     : MergeAlgorithm::kKWay,
      .target = parameters.choice("target", {"direct", "buffer"}) == "direct" ? MergeTarget::kDirect
                                                                              : MergeTarget::kBuffer,
      .duplicates = parameters.number("duplicates", 0, 100) == 100,
      .medium = read_medium(parameters),
      .library_cycles = static_cast<std::uint32_t>(parameters.number("library_cycles", 0, kMostCycles)),
  };
}

/// Experiments E6 and E7 of Goetze et al. (DaMoN 2020): a full C0 is moved to level 0 of a tree, or level 0 is
/// merged into a run of level 1; each time of another tree, at random, out of an array larger than the caches.
/// Each operation is timed on its own.
///
/// C0 has just been filled, before the operation begins, and is in the caches as far as it fits. A tree's runs
/// of level 0 are written when it is first chosen, without time, and so is Run_Ptr as the operation has to find
/// it.
class SortedRun final : public Workload {
 public:
  SortedRun(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)),
        options_(options_from(parameters)),
        random_(mix64(seed)),
        lingers_(options_.merges || platform.controller.eadr != 0),
        warmup_(seed, cached_lines(platform, 1)) {
    levels_ = options_.merges ? 2 : 1;
    tree_bytes_ = Levels::bytes(options_.pairs, levels_);
    trees_ = 1 + static_cast<std::uint64_t>(kArrayOverCache * static_cast<double>(platform.llc.size) /
                                            static_cast<double>(tree_bytes_));
    filled_.resize(trees_);
    base_ = memory_.allocate(options_.medium, trees_ * tree_bytes_, {.name = "trees", .alignment = 1 << 21});
    const blocks::undo::Place place{
        memory_.allocate(options_.medium, log_bytes(), {.name = "undo log", .alignment = 1 << 21}),
        log_bytes()};
    log_.emplace(UndoLog::create(memory_, place, {.library_cycles = options_.library_cycles}));
    log_base_ = place.base;
    buffer_ = memory_.allocate(
        Medium::kDram, std::max(SortedBuffer::bytes(options_.pairs), UnsortedBuffer::bytes(options_.pairs)),
        {.name = "C0", .alignment = 4096});
    merger_.emplace(options_.algorithm, options_.target,
                    memory_.allocate(Medium::kDram, Merger::scratch_bytes(options_.pairs),
                                     {.name = "merge buffers", .alignment = 4096}));
    // Micro-operations of an operation, roughly; some millions of them are enough for a mean.
    const auto pairs = static_cast<std::int64_t>(options_.pairs);
    measured_ = std::clamp(kMicroOps / (pairs * (options_.merges          ? 100
                                                 : options_.sorted_buffer ? 20
                                                                          : 150)),
                           kFewestOperations, kMostOperations);
  }

  [[nodiscard]] std::uint32_t threads() const override { return 1; }
  [[nodiscard]] machine::RunLength usual_length() const override {
    return machine::RunLength::in_order(warmup_.operations() + settling() - measured_ / 4, measured_ / 4,
                                        measured_);
  }
  [[nodiscard]] std::uint64_t pmem_footprint() const override {
    return options_.medium == Medium::kPmem ? trees_ * tree_bytes_ + log_bytes() : 0;
  }
  [[nodiscard]] std::map<std::string, double> facts() const override {
    return {{"bytes_written", static_cast<double>(bytes_written_) / static_cast<double>(std::max(done_, 1UL))}};
  }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    // Loads of random lines, so that the caches are full of other trees.
    if (warmup_.refill(memory_, thread, stream, [&](Random& random) {
          const std::uint64_t line = random.below(trees_ * tree_bytes_ / memory::kLineBytes);
          static_cast<void>(memory_.load<std::uint64_t>(base_ + line * memory::kLineBytes));
        }))
      return;
    memory_.detach();
    const Levels levels = next_tree();
    Publisher publisher(options_.atomicity, &*log_);
    if (options_.merges) {
      memory_.attach(stream, thread);
      begin(stream);
      ensure(merger_->merge(memory_, levels, publisher, 0), "a level that was made full is not");
      end(stream, options_.duplicates ? options_.pairs : kRunsPerLevel * options_.pairs);
    } else if (options_.sorted_buffer) {
      timed_move<SortedBuffer>(thread, stream, levels, publisher);
    } else {
      timed_move<UnsortedBuffer>(thread, stream, levels, publisher);
    }
  }

 private:
  /// Operations before those that are measured. The first merge of a tree finds none of its lines in the caches
  /// and takes up to twice as long: after five merges for each tree, in the mean, one of 150 has had none. As
  /// many moves leave persistent caches full of what they have stored.
  [[nodiscard]] std::int64_t settling() const {
    constexpr std::int64_t kMost = 20'000;
    const std::int64_t visits = lingers_ ? std::min(5 * static_cast<std::int64_t>(trees_), kMost) : 0;
    return std::max(measured_ / 4, visits);
  }

  static constexpr std::int64_t kMicroOps = 20'000'000;
  static constexpr std::int64_t kFewestOperations = 100;
  static constexpr std::int64_t kMostOperations = 4'000;

  /// For the largest snapshot: the run of level 1.
  [[nodiscard]] std::uint64_t log_bytes() const {
    return UndoLog::place_bytes(2 * Levels::run_bytes(kRunsPerLevel * options_.pairs));
  }

  Levels next_tree() {
    const std::uint64_t tree = random_.below(trees_);
    const Levels levels(base_ + tree * tree_bytes_, options_.pairs, levels_);
    std::uint64_t word = levels.word(memory_);
    if (options_.merges) {
      if (!filled_[tree])
        fill_level(levels);
      filled_[tree] = true;
      const std::uint32_t merged = Levels::valid(word, 1);
      word = Levels::with(Levels::with(0, 0, kRunsPerLevel), 1, merged == kRunsPerLevel ? 0 : merged);
    } else if (Levels::valid(word, 0) == kRunsPerLevel) {
      word = 0;
    }
    memory_.store<std::uint64_t>(levels.pointer(), word);
    return levels;
  }

  /// The keys of a run of duplicates are those of all runs; else all runs together have each key once.
  void fill_level(const Levels& levels) {
    const std::uint64_t keys = options_.duplicates ? options_.pairs : kRunsPerLevel * options_.pairs;
    std::vector<std::uint64_t> order(keys);
    std::iota(order.begin(), order.end(), 0);
    if (!options_.duplicates)
      shuffle(order);
    for (std::uint32_t index = 0; index < kRunsPerLevel; ++index) {
      const auto first =
          order.begin() + static_cast<std::ptrdiff_t>(options_.duplicates ? 0 : index * options_.pairs);
      std::vector<std::uint64_t> of_run(first, first + static_cast<std::ptrdiff_t>(options_.pairs));
      std::ranges::sort(of_run);
      const Address run = levels.run(0, index);
      memory_.store<std::uint64_t>(run, options_.pairs);
      for (std::uint64_t at = 0; at < options_.pairs; ++at)
        store_pair(memory_, Levels::pairs_of(run) + at * kPairBytes, {of_run[at], {index, of_run[at]}});
    }
  }

  template <typename Values>
  void shuffle(Values& values) {
    for (std::uint64_t left = values.size(); left > 1; --left)
      std::swap(values[left - 1], values[random_.below(left)]);
  }

  template <typename Buffer>
  void timed_move(std::uint32_t thread, memory::Stream& stream, const Levels& levels, Publisher& publisher) {
    std::vector<Pair> pairs(options_.pairs);
    for (std::uint64_t at = 0; at < pairs.size(); ++at)
      pairs[at] = {at, {at, done_}};
    shuffle(pairs);
    memory_.attach(stream, thread);
    Buffer buffer(buffer_, options_.pairs);
    buffer.fill(memory_, pairs);
    begin(stream);
    ensure(blocks::run::move(memory_, levels, publisher, buffer, options_.pairs), "a tree with room has none");
    end(stream, options_.pairs);
  }

  void begin(memory::Stream& stream) {
    stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
    began_ = stream.size();
  }
  void end(memory::Stream& stream, std::uint64_t pairs) {
    for (std::size_t at = began_; at < stream.size(); ++at) {
      const memory::MicroOp& op = stream[at];
      const bool stores = op.kind == memory::OpKind::kStore || op.kind == memory::OpKind::kStreamStore;
      const bool in_trees = op.address - base_ < trees_ * tree_bytes_;
      if (stores && (in_trees || op.address - log_base_ < log_bytes()))
        bytes_written_ += op.bytes;
    }
    ++done_;
    stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(pairs * kPairBytes));
    // The clock is read behind an lfence: the next buffer is not filled before the operation has ended.
    stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
  }

  memory::SimMemory memory_;
  Options options_;
  Random random_;
  std::uint32_t levels_ = 1;
  std::uint64_t tree_bytes_ = 0;
  std::uint64_t trees_ = 0;
  Address base_ = 0;
  Address log_base_ = 0;
  Address buffer_ = 0;
  std::optional<UndoLog> log_;
  std::optional<Merger> merger_;
  std::vector<bool> filled_;  ///< trees whose level 0 was written
  bool lingers_;              ///< what an operation leaves in the caches matters to later ones
  LoadWarmup warmup_;
  std::int64_t measured_ = 0;
  std::size_t began_ = 0;
  std::uint64_t done_ = 0;           ///< operations
  std::uint64_t bytes_written_ = 0;  ///< of these, to trees and log
};

}  // namespace

std::unique_ptr<Workload> make_sorted_run(Parameters& parameters, const machine::PlatformParams& platform,
                                          std::uint64_t seed) {
  return std::make_unique<SortedRun>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
