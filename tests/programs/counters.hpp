#pragma once

#include <array>
#include <map>
#include <stdexcept>
#include <utility>

#include <pmsim/blocks/site.hpp>
#include <pmsim/prototype.hpp>

using namespace pmsim::prototype;

struct Numbered {
  static constexpr Site kFlush = 1, kFence = 2;
  static constexpr std::array<pmsim::blocks::SiteInfo, 2> kSites{{{kFlush, "counter"}, {kFence, "counter"}}};
};

/// Counters, which are added to under a latch, or beside it.
template <Memory M>
class Counters : public Numbered {
 public:
  void create(M& memory) {
    latch_ = memory.allocate(Medium::kDram, 64, "latch");
    base_ = memory.allocate(Medium::kPmem, 64 * 4, "counters");
  }
  void run(M& memory, std::pair<std::uint64_t, bool> operation) {
    const auto [number, latched] = operation;
    if (number >= 4)
      throw std::out_of_range("there are four counters");
    const std::uint64_t version = latched ? memory.acquire(latch_, LatchMode::kExclusive) : 0;
    const Address counter = base_ + 64 * number;
    memory.template store<std::uint64_t>(counter, memory.template load<std::uint64_t>(counter) + 1);
    persist(memory, counter);
    if (latched)
      memory.release(latch_, LatchMode::kExclusive, version);
  }
  std::map<std::uint64_t, std::uint64_t> recover(M& memory) {
    latch_ = memory.region("latch");
    base_ = memory.region("counters");
    std::map<std::uint64_t, std::uint64_t> found;
    for (std::uint64_t number = 0; number < 4; ++number)
      found[number] = memory.template load<std::uint64_t>(base_ + 64 * number);
    return found;
  }

 private:
  static void persist(M& memory, Address counter) {
    memory.flush(counter, 8, FlushKind::kClwb, kFlush);
    memory.sfence(kFence);
  }
  Address latch_ = 0, base_ = 0;
};
