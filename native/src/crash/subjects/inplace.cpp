#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "pmsim/blocks/inplace/all.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"

namespace pmsim::crash {

namespace {

using namespace blocks::inplace;
using memory::Address;
using memory::SimMemory;
using Value = std::vector<std::byte>;

/// The values of all records after recovery, and the block that recovery has made.
template <typename Block>
struct Values final : Recovered {
  std::vector<Value> of;
  std::optional<Block> block;  ///< nothing where create() had not finished
};

/// Every word has 32 bits set: words of two values can take each other's place in a PopLog entry without its
/// count telling. Only zeroed space protects it, and that is to be tested.
Value value_of(std::uint64_t seed, std::size_t bytes) {
  Random random(seed);
  Value value(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t half = random.next() >> 32;
    const std::uint64_t word = half << 32 | (~half & 0xffff'ffff);
    std::memcpy(&value[at], &word, sizeof word);
  }
  return value;
}

std::string shown(std::span<const std::byte> value) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : value) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

/// A program of updates to a few records. The promise: each record has its last acknowledged value, or that of
/// the update in flight, whole; recovery changes nothing that was acknowledged, and may itself be cut short.
///
/// recover() goes on after the block's own recovery: it writes the value it found into the first record once
/// more. Only so is a recovery caught that leaves something undone for the next update to stumble upon.
template <typename Block>
class InPlaceSubject final : public Subject {
 public:
  /// A program works with records of one of the method's sizes.
  InPlaceSubject(std::uint64_t seed, Scale scale) {
    Random random(seed);
    bytes_ = Block::kCheckedSizes[random.below(Block::kCheckedSizes.size())];
    const std::size_t records = scale == Scale::kSmall ? 2 : 5;
    const std::uint32_t updates = scale == Scale::kSmall ? 4 : 60;
    log_updates_ = scale == Scale::kSmall ? 2 : 7;
    expected_.assign(records, Value(bytes_));
    draw_plan(random, updates);
    after_recovery_ = random.next();
  }

  void create(SimMemory& memory) override {
    if constexpr (LogsUpdates<Block>) {
      place_.bytes = Block::log_bytes(bytes_, log_updates_);
      place_.base = memory.allocate(memory::Medium::kPmem, place_.bytes, {.name = "log"});
    }
    stride_ = stride_of<Block>(bytes_);
    base_ = memory.allocate(memory::Medium::kPmem, stride_ * expected_.size(), {.name = "records"});
    if constexpr (LogsUpdates<Block>) {
      block_.emplace(Block::create(memory, bytes_, place_));
    } else {
      block_.emplace(bytes_);
    }
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const Update& update = plan_[index];
    in_flight_ = &update;
    block_->update(memory, address(update.record), update.value);
    expected_[update.record] = update.value;
    in_flight_ = nullptr;
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto values = std::make_unique<Values<Block>>();
    values->block = restart(memory);
    for (std::size_t record = 0; record < expected_.size(); ++record)
      values->of.push_back(value(memory, record));
    if (values->block)  // else the log was never there, and no update has begun
      values->block->update(memory, address(0), values->of[0]);
    return values;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory& memory) const override {
    const auto& values = static_cast<const Values<Block>&>(recovered);
    for (std::size_t record = 0; record < expected_.size(); ++record) {
      const Value& found = values.of[record];
      const bool in_flight = in_flight_ != nullptr && in_flight_->record == record;
      const std::string who = "record " + std::to_string(record);
      if (found != expected_[record] && !(in_flight && found == in_flight_->value))
        return who + " is " + shown(found) + ", must be " + shown(expected_[record]) +
               (in_flight ? " or, in flight, " + shown(in_flight_->value) : "");
      if (const Value now = value(memory, record); now != found)
        return who + " was recovered as " + shown(found) + " and is now " + shown(now);
    }
    return {};
  }

  /// Goes on with a few updates. What recovery has found must stay.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& values = static_cast<Values<Block>&>(recovered);
    if (!values.block)
      return nullptr;
    auto next = std::make_unique<InPlaceSubject>(*this);
    next->block_ = std::move(values.block);
    next->expected_ = std::move(values.of);
    next->in_flight_ = nullptr;
    Random random(after_recovery_);
    next->draw_plan(random, kUpdatesAfterRecovery);
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    return "update record " + std::to_string(plan_[index].record) + " to " + shown(plan_[index].value);
  }

 private:
  /// More than the log of a small program has room for.
  static constexpr std::uint32_t kUpdatesAfterRecovery = 3;

  struct Update {
    std::size_t record;
    Value value;
  };

  /// Every second update leaves some words of its record, or all, as they are: where old and new are the same,
  /// versions and counts alone tell what has been written.
  void draw_plan(Random& random, std::uint32_t updates) {
    plan_.clear();
    std::vector<Value> last = expected_;
    for (std::uint32_t update = 0; update < updates; ++update) {
      const std::size_t record = random.below(last.size());
      Value value = value_of(random.next(), bytes_);
      const std::uint64_t kept = random.below(2) == 0 ? random.next() : 0;  // a bit for each word
      for (std::size_t word = 0; word < bytes_ / sizeof(std::uint64_t); ++word) {
        if (kept >> word & 1)
          std::memcpy(&value[word * 8], &last[record][word * 8], 8);
      }
      last[record] = value;
      plan_.push_back({record, std::move(value)});
    }
  }

  [[nodiscard]] Address address(std::size_t record) const { return base_ + record * stride_; }

  /// The block's own recovery; nothing where create() had not finished.
  [[nodiscard]] std::optional<Block> restart(SimMemory& memory) const {
    if constexpr (LogsUpdates<Block>) {
      return Block::recover(memory, bytes_, place_);
    } else {
      Block block(bytes_);
      if constexpr (requires { block.recover(memory, base_); }) {
        for (std::size_t record = 0; record < expected_.size(); ++record) {
          if (block.recover(memory, address(record)).damaged)
            throw SimulationError("record " + std::to_string(record) + " is in an impossible state");
        }
      }
      return block;
    }
  }

  [[nodiscard]] Value value(SimMemory& memory, std::size_t record) const {
    Value value(bytes_);
    if constexpr (LogsUpdates<Block>) {
      memory.read(address(record), value);
    } else {
      Block(bytes_).read(memory, address(record), value);
    }
    return value;
  }

  std::size_t bytes_ = 0;
  std::uint64_t log_updates_ = 0;
  blocks::log::Place place_;
  Address base_ = 0;
  std::uint64_t stride_ = 0;
  std::optional<Block> block_;
  std::uint64_t after_recovery_ = 0;  ///< seed of the updates after a recovery
  std::vector<Update> plan_;
  std::vector<Value> expected_;
  const Update* in_flight_ = nullptr;
};

/// Updates by log have the persistence points of their log, too. One of these matters to other users of a log
/// only.
template <typename Block>
std::vector<blocks::SiteInfo> sites_of() {
  std::vector<blocks::SiteInfo> sites(Block::kSites.begin(), Block::kSites.end());
  if constexpr (LogsUpdates<Block>) {
    using blocks::log::FileHeader;
    using blocks::log::PopLog;
    sites.insert(sites.end(), PopLog::kSites.begin(), PopLog::kSites.end());
    sites.insert(sites.end(), FileHeader::kSites.begin(), FileHeader::kSites.end());
    for (blocks::SiteInfo& site : sites) {
      if (site.id == FileHeader::kFormatFence)
        site.redundant =
            "no record is written before the first append, whose fence waits for the file header, too";
    }
  }
  return sites;
}

template <typename Block>
const SubjectKind* kind() {
  static const std::string name = "inplace-" + std::string(Block::kNames[0].name);
  static const std::vector<blocks::SiteInfo> sites = sites_of<Block>();
  static const SubjectKind kind{
      name, Block::kNames[0].title, sites, [](std::uint64_t seed, Scale scale) {
        return std::unique_ptr<Subject>(std::make_unique<InPlaceSubject<Block>>(seed, scale));
      }};
  return &kind;
}

}  // namespace

std::vector<const SubjectKind*> in_place_subjects() {
  return []<typename... Blocks>(const std::tuple<Blocks...>*) {
    return std::vector<const SubjectKind*>{kind<Blocks>()...};
  }(static_cast<const AllMethods*>(nullptr));
}

}  // namespace pmsim::crash
