#include "pmsim/machine/hierarchy.hpp"

#include <string>

/// How the L1s and L2s of several cores agree on a line (MESI, by a snoop filter).
namespace pmsim::machine {

Hierarchy::Snooped Hierarchy::snoop_others(const Core& asks, HashedLine line, bool take) {
  Snooped snooped;
  const Sharers::Cores others = sharers_.others_of(line.line(), asks.index);
  if (others == 0)
    return snooped;
  for (Core& core : cores_) {
    if ((others & Sharers::bit_of(core.index)) == 0 || core.index == asks.index)
      continue;
    for (Cache* cache : {&core.l1, &core.l2}) {
      const Cache::Place place = cache->place_of(line);
      std::uint64_t word = Cache::kEmpty;
      if (take) {
        word = cache->remove(place, line.line());
      } else if (std::uint64_t* kept = cache->touch(place, line.line()); kept != nullptr) {
        word = *kept;
        *kept = (word | Cache::kShared) & ~Cache::kDirty;
      }
      if (word != Cache::kEmpty) {
        snooped.found = true;
        snooped.dirty = snooped.dirty || (word & Cache::kDirty) != 0;
      }
    }
  }
  return snooped;
}

Level Hierarchy::fetch_coherently(Core& core, HashedLine line, const Cache::Place& in_l2, bool write,
                                  std::uint64_t extra_flags, std::uint64_t& shared, std::vector<TimedOp>& out) {
  const Snooped snooped = snoop_others(core, line, write);
  if (!snooped.found) {
    sharers_.set_owner(line.line(), core.index);
    return fetch_into_l2<true>(core, line, in_l2, extra_flags, out);
  }
  if (write) {
    llc_.remove(llc_.place_of(line), line.line());
    sharers_.set_owner(line.line(), core.index);
    fill_l2<true>(core, in_l2, line.line(), out);  // the store makes it dirty
    return kFromCore;
  }
  // What the last level keeps of lines that are shared saves the next reader the way to another core (Intel
  // Xeon Processor Scalable Family Technical Overview, 2017, "Cache Hierarchy Changes").
  sharers_.add(line.line(), core.index);
  const std::uint64_t dirty = snooped.dirty ? Cache::kDirty : 0;
  const bool in_llc = llc_.touch(llc_.place_of(line), line.line()) != nullptr;
  put_into_llc(line.line() | dirty, line, out);
  shared = Cache::kShared;
  fill_l2<true>(core, in_l2, line.line() | Cache::kShared | (extra_flags & Cache::kPrefetched), out);
  // A copy from before the line was written is of no use: L2 had given it up, and L1 had not.
  return in_llc && !snooped.dirty ? kLlc : kFromCore;
}

Level Hierarchy::take_from_others(Core& core, HashedLine line) {
  const Snooped snooped = snoop_others(core, line, true);
  llc_.remove(llc_.place_of(line), line.line());
  sharers_.set_owner(line.line(), core.index);
  for (Cache* cache : {&core.l1, &core.l2}) {
    if (std::uint64_t* word = cache->touch(cache->place_of(line), line.line()); word != nullptr)
      *word &= ~Cache::kShared;
  }
  return snooped.found ? kFromCore : kLlc;
}

void Hierarchy::lost_by_l2(Core& core, HashedLine line) {
  if (!core.l1.may_hold(core.l1.place_of(line)))
    sharers_.remove(line.line(), core.index);
}

void Hierarchy::flush_in_others(Core& core, HashedLine line, bool keep, Copies& copies) {
  copies.dirty = snoop_others(core, line, !keep).dirty || copies.dirty;
  if (!keep)
    sharers_.clear(line.line());
}

std::string Hierarchy::incoherence(std::uint64_t line) {
  const HashedLine hashed(line);
  std::uint32_t holders = 0, owners = 0;
  for (Core& core : cores_) {
    bool held = false, shared = false;
    for (Cache* cache : {&core.l1, &core.l2}) {
      if (const std::uint64_t* word = cache->touch(cache->place_of(hashed), line); word != nullptr) {
        held = true;
        shared = shared || (*word & Cache::kShared) != 0;
      }
    }
    holders += held ? 1 : 0;
    owners += held && !shared ? 1 : 0;
    if (held && (sharers_.of(line) & Sharers::bit_of(core.index)) == 0)
      return "core " + std::to_string(core.index) + " has it, and its filter does not know";
  }
  return owners > 0 && holders > 1 ? "a core believes it is alone with it" : "";
}

}  // namespace pmsim::machine
