#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pmsim/crash/registry.hpp"

namespace pmsim::crash::toys {

using memory::Address;
using memory::FlushKind;
using memory::Medium;
using memory::SimMemory;

/// What may be wrong with the toy.
enum class Bug : std::uint8_t {
  kNone,
  kNoFlush,         ///< the payload is never written back
  kNoFence,         ///< between payload and length
  kWrongOrder,      ///< length before payload
  kNoLastFence,     ///< acknowledged before it is durable
  kRecoveryThrows,  ///< where the length is odd
  kRunThrows,       ///< has no place for what it shall append
  kRecoveredTail,   ///< what goes on after recovery appends one entry too early
  kThirdCrash,      ///< recovery from a crash of what has gone on takes an entry away for a while
};

/// The two-barrier persist: payload, flush, fence; length, flush, fence.
template <Bug kBug>
class Append final : public Subject {
 public:
  static constexpr std::array<blocks::SiteInfo, 5> kSites{{{10, "payload: write back"},
                                                           {11, "payload: fence"},
                                                           {12, "length: write back"},
                                                           {13, "length: fence"},
                                                           {14, "before all", "nothing is on its way"}}};
  Append(std::uint64_t seed, Scale scale)
      : seed_(seed), operations_(scale == Scale::kSmall ? 2 + static_cast<std::uint32_t>(seed % 2) : 40) {}

  void create(SimMemory& memory) override {
    base_ = memory.allocate(Medium::kPmem, 64 + 16 * (operations_ + kMore), {.name = "toy"});
  }
  [[nodiscard]] std::uint32_t operations() const override { return operations_; }
  void run(SimMemory& memory, std::uint32_t number) override {
    const std::uint64_t index = first_ + number;
    in_flight_ = true;
    if (kBug == Bug::kRunThrows && number == 1)
      throw ConfigError("full");
    memory.sfence(14);
    if (kBug == Bug::kThirdCrash && gone_on_) {
      memory.store<std::uint64_t>(base_ + 8, 1);
      persist(memory, base_ + 8);
    }
    if constexpr (kBug == Bug::kWrongOrder)
      length(memory, index + 1);
    const std::array<std::uint64_t, 2> payload{value(index), ~value(index)};
    memory.write(slot(index), std::as_bytes(std::span(payload)));
    if constexpr (kBug != Bug::kNoFlush)
      memory.flush(slot(index), 16, FlushKind::kClwb, 10);
    if constexpr (kBug != Bug::kNoFence)
      memory.sfence(11);
    if constexpr (kBug != Bug::kWrongOrder)
      length(memory, index + 1);
    ++acknowledged_;
    in_flight_ = false;
  }
  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<Found>();
    found->length = memory.load<std::uint64_t>(base_);
    if (kBug == Bug::kRecoveryThrows && found->length % 2 == 1)
      throw ConfigError("an odd number of entries");
    if (kBug == Bug::kThirdCrash && memory.load<std::uint64_t>(base_ + 8) == 1 && found->length > 0) {
      for (const std::uint64_t length : {found->length - 1, found->length}) {
        memory.store<std::uint64_t>(base_, length);
        persist(memory, base_);
      }
    }
    for (std::uint64_t index = 0; index < found->length; ++index)
      found->values.push_back(
          {memory.load<std::uint64_t>(slot(index)), memory.load<std::uint64_t>(slot(index) + 8)});
    return found;
  }
  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory&) const override {
    const auto& found = static_cast<const Found&>(recovered);
    if (found.length < acknowledged_ || found.length > acknowledged_ + (in_flight_ ? 1 : 0))
      return "found " + std::to_string(found.length) + " entries; " + std::to_string(acknowledged_) +
             " are acknowledged";
    for (std::uint32_t index = 0; index < found.length; ++index) {
      if (found.values[index] != std::array{value(index), ~value(index)})
        return "entry " + std::to_string(index) + " is torn";
    }
    return {};
  }
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto next = std::make_unique<Append>(*this);
    next->acknowledged_ = static_cast<Found&>(recovered).length;
    next->first_ = next->acknowledged_;
    if (kBug == Bug::kRecoveredTail && next->first_ > 0)
      --next->first_;
    next->operations_ = kMore;
    next->in_flight_ = false;
    next->gone_on_ = true;
    return next;
  }
  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    return "append " + std::to_string(value(first_ + index));
  }

  static const SubjectKind& kind() {
    static const SubjectKind kind{"toy", "a toy", kSites, [](std::uint64_t seed, Scale scale) {
                                    return std::unique_ptr<Subject>(new Append(seed, scale));
                                  }};
    return kind;
  }

 private:
  struct Found final : Recovered {
    std::uint64_t length = 0;
    std::vector<std::array<std::uint64_t, 2>> values;
  };
  static void persist(SimMemory& memory, Address word) {
    memory.flush(word, 8, FlushKind::kClwb);
    memory.sfence();
  }
  void length(SimMemory& memory, std::uint64_t value) {
    memory.store<std::uint64_t>(base_, value);
    memory.flush(base_, 8, FlushKind::kClwb, 12);
    if constexpr (kBug != Bug::kNoLastFence)
      memory.sfence(13);
  }
  [[nodiscard]] Address slot(std::uint64_t index) const { return base_ + 64 + 16 * index; }
  [[nodiscard]] std::uint64_t value(std::uint64_t index) const { return mix64(seed_ + index) | 1; }

  std::uint64_t seed_;
  std::uint32_t operations_;
  Address base_ = 0;
  static constexpr std::uint32_t kMore = 2;  ///< entries that are appended after a recovery
  std::uint64_t first_ = 0;                  ///< the entry that run(0) appends
  std::uint64_t acknowledged_ = 0;
  bool in_flight_ = false;
  bool gone_on_ = false;
};

/// Two accounts and a redo log of one transfer. Recovery finishes the transfer.
///  kAdds: the log says what to add, so that a recovery cut short adds it twice.
template <bool kAdds>
class Transfer final : public Subject {
 public:
  static constexpr std::array<blocks::SiteInfo, 6> kSites{
      {{20, "log: write back"},
       {21, "log: order of entry and mark"},
       {22, "log: fence"},
       {23, "accounts: write back"},
       {24, "accounts: fence"},
       {25, "mark: write back and fence", "later entries share its line, and order follows"}}};
  Transfer(std::uint64_t, Scale scale) : operations_(scale == Scale::kSmall ? 2 : 20) {}

  void create(SimMemory& memory) override { base_ = memory.allocate(Medium::kPmem, 256, {.name = "accounts"}); }
  [[nodiscard]] std::uint32_t operations() const override { return operations_; }
  void run(SimMemory& memory, std::uint32_t index) override {
    in_flight_ = true;
    const std::uint64_t a = memory.load<std::uint64_t>(base_);
    memory.store<std::uint64_t>(base_ + 128, kAdds ? 1 : a + 1);
    memory.store<std::uint64_t>(base_ + 136, kAdds ? ~0ULL : ~a);
    memory.order(21);
    memory.store<std::uint64_t>(base_ + 144, 1);
    memory.flush(base_ + 128, 24, FlushKind::kClwb, 20);
    memory.sfence(22);
    finish(memory);
    static_cast<void>(index);
    ++acknowledged_;
    in_flight_ = false;
  }
  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    if (memory.load<std::uint64_t>(base_ + 144) == 1)
      finish(memory);
    return std::make_unique<Recovered>();
  }
  [[nodiscard]] std::string check(const Recovered&, SimMemory& memory) const override {
    const auto a = memory.load<std::uint64_t>(base_);
    const auto b = ~memory.load<std::uint64_t>(base_ + 64) + 1;  // the second account goes down
    if (a != b)
      return "the accounts are " + std::to_string(a) + " and -" + std::to_string(b);
    if (a < acknowledged_ || a > acknowledged_ + (in_flight_ ? 1 : 0))
      return std::to_string(a) + " transfers found, " + std::to_string(acknowledged_) + " acknowledged";
    return {};
  }
  [[nodiscard]] std::string describe(std::uint32_t) const override { return "transfer 1"; }

  static const SubjectKind& kind() {
    static const SubjectKind kind{"transfer", "a toy", kSites, [](std::uint64_t seed, Scale scale) {
                                    return std::unique_ptr<Subject>(new Transfer(seed, scale));
                                  }};
    return kind;
  }

 private:
  void finish(SimMemory& memory) const {
    for (const Address account : {Address{0}, Address{64}}) {
      const auto entry = memory.load<std::uint64_t>(base_ + 128 + account / 8);
      const auto before = memory.load<std::uint64_t>(base_ + account);
      memory.store<std::uint64_t>(base_ + account, kAdds ? before + entry : entry);
    }
    memory.flush(base_, 128, FlushKind::kClwb, 23);
    memory.sfence(24);
    memory.store<std::uint64_t>(base_ + 144, 0);
    memory.flush(base_ + 144, 8, FlushKind::kClwb, 25);
    memory.sfence(25);
  }
  std::uint32_t operations_;
  Address base_ = 0;
  std::uint32_t acknowledged_ = 0;
  bool in_flight_ = false;
};

/// A word and an undo log of one entry, whose mark says that an update is under way. Recovery puts the entry
/// back.
///  kMarks: recovery sets the mark for as long as it works. One that is cut short makes the next one undo what
///  was acknowledged.
template <bool kMarks>
class Undo final : public Subject {
 public:
  static constexpr std::array<blocks::SiteInfo, 1> kSites{{{30, "all of them"}}};
  Undo(std::uint64_t, Scale scale) : operations_(scale == Scale::kSmall ? 2 : 20) {}

  void create(SimMemory& memory) override { base_ = memory.allocate(Medium::kPmem, 192, {.name = "word"}); }
  [[nodiscard]] std::uint32_t operations() const override { return operations_; }
  void run(SimMemory& memory, std::uint32_t) override {
    in_flight_ = true;
    put(memory, kEntryAt, memory.load<std::uint64_t>(base_));
    put(memory, kMarkAt, 1);
    put(memory, 0, acknowledged_ + 1);
    put(memory, kMarkAt, 0);
    ++acknowledged_;
    in_flight_ = false;
  }
  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    const bool marked = memory.load<std::uint64_t>(base_ + kMarkAt) == 1;
    if (kMarks && !marked)
      put(memory, kMarkAt, 1);
    if (marked)
      put(memory, 0, memory.load<std::uint64_t>(base_ + kEntryAt));
    if (kMarks || marked)
      put(memory, kMarkAt, 0);
    return std::make_unique<Recovered>();
  }
  [[nodiscard]] std::string check(const Recovered&, SimMemory& memory) const override {
    const auto found = memory.load<std::uint64_t>(base_);
    if (found == acknowledged_ || (in_flight_ && found == acknowledged_ + 1))
      return {};
    return std::to_string(found) + " updates found, " + std::to_string(acknowledged_) + " acknowledged";
  }
  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    return "update to " + std::to_string(index + 1);
  }

  static const SubjectKind& kind() {
    static const SubjectKind kind{"undo", "a toy", kSites, [](std::uint64_t seed, Scale scale) {
                                    return std::unique_ptr<Subject>(new Undo(seed, scale));
                                  }};
    return kind;
  }

 private:
  static constexpr Address kEntryAt = 64, kMarkAt = 128;

  void put(SimMemory& memory, Address at, std::uint64_t value) const {
    memory.store<std::uint64_t>(base_ + at, value);
    memory.flush(base_ + at, 8, FlushKind::kClwb, 30);
    memory.sfence(30);
  }
  std::uint32_t operations_;
  Address base_ = 0;
  std::uint64_t acknowledged_ = 0;
  bool in_flight_ = false;
};

}  // namespace pmsim::crash::toys
