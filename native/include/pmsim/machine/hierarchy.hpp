#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/prefetcher.hpp"
#include "pmsim/machine/sharers.hpp"
#include "pmsim/machine/timed_op.hpp"
#include "pmsim/machine/tlb.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::machine {

/// The time-free half of a machine: TLBs, cache tags and prefetchers of all cores. Turns micro-operations into
/// TimedOps. Because it needs no clock, several timing lanes can share one hierarchy (design, section 1).
///
/// L2 holds what was fetched; the last-level cache receives its victims (non-inclusive, Skylake-SP).
///
/// The caches of several cores are kept coherent where the source says that threads share lines (Source): a
/// line is in any number of L1s and L2s that read it, or in those of one core that writes it. One that several
/// cores have is marked in their tags (Cache::kShared) and has a copy in the last level. Without coherence a
/// line that two cores write is timed as if each owned it.
class Hierarchy {
 public:
  Hierarchy(const PlatformParams& params, std::uint32_t threads, bool coherent = false);

  /// Appends the timed form of all of `stream` to `out`.
  /// `poll` is called now and then where the stream is long (the recovery of an engine is one), and may throw.
  void classify(std::uint32_t thread, const memory::Stream& stream, std::vector<TimedOp>& out,
                const std::function<void()>& poll = {});

  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

  /// Of coherent caches, for tests: what is wrong with a line, or nothing. Changes which lines are recent.
  [[nodiscard]] std::string incoherence(std::uint64_t line);

 private:
  /// What a thread has asked to be made durable since its last fence.
  struct Unfenced {
    static constexpr std::uint64_t kNothing = ~std::uint64_t{0};
    std::uint64_t last_line = kNothing;
    std::uint64_t fences = 0;
  };
  /// The latest load of a thread, where it was an independent hit in L1 that nothing has needed so far.
  struct LatestHit {
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::uint64_t line = kNone;
  };
  struct Flushed {
    std::uint64_t line = 0;
    const Unfenced* thread = nullptr;
    std::uint64_t fences = 0;  ///< that the thread had executed
  };
  struct Core {
    Core(const PlatformParams& params, std::uint32_t index);
    std::uint32_t index;
    Tlb tlb;
    Cache l1;
    Cache l2;
    Prefetcher prefetcher;
    std::array<Flushed, 64> recently_flushed{};  ///< direct-mapped by line
    bool looks_ahead = true;                     ///< its last few dozen operations did not all hit L1
    bool hits_l1 = true;                         ///< some of them did
  };

  /// What a flush has found of a line.
  struct Copies {
    bool own = false;  ///< in L1 or L2 of the core
    bool dirty = false;
  };

  /// Accesses that did not hit L1, over all cores.
  [[nodiscard]] std::int64_t beyond_l1() const noexcept {
    return counters_.loads + counters_.stores + counters_.stream_stores + counters_.atomics - counters_.l1_hits;
  }
  void persist(Unfenced& unfenced, std::uint64_t line) noexcept {
    counters_.lines_persisted += unfenced.last_line == line ? 0 : 1;
    unfenced.last_line = line;
  }
  void fence(Unfenced& unfenced) noexcept {
    ++counters_.fences;
    ++unfenced.fences;
    counters_.persist_barriers += unfenced.last_line == Unfenced::kNothing ? 0 : 1;
    unfenced.last_line = Unfenced::kNothing;
  }
  template <bool kCoherent>
  void classify_all(std::uint32_t thread, const memory::Stream& stream, std::vector<TimedOp>& out,
                    const std::function<void()>& poll);
  // What has kCoherent is compiled twice, so that coherence costs nothing where threads share nothing.
  template <bool kCoherent>
  void classify(Core& core, Unfenced& unfenced, LatestHit& latest, const memory::MicroOp& op,
                std::vector<TimedOp>& out);
  void prefetch_tags(const Core& core, const memory::MicroOp* first, const memory::MicroOp* last) const;
  template <bool kCoherent>
  Translation translate(Core& core, std::uint64_t address, std::vector<TimedOp>& out) {
    const std::uint64_t page = core.tlb.page_of(address);
    return core.tlb.is_last(page) ? kTlbFirst : translate_other<kCoherent>(core, page, out);
  }
  /// Of another page than the access before.
  template <bool kCoherent>
  Translation translate_other(Core& core, std::uint64_t page, std::vector<TimedOp>& out);
  template <bool kCoherent>
  Level read_page_table(Core& core, HashedLine line, std::vector<TimedOp>& out);
  template <bool kCoherent>
  Level access(Core& core, const Unfenced& unfenced, std::uint64_t line, bool write, std::uint8_t& flags,
               std::vector<TimedOp>& out);
  void push_prefetches(std::vector<TimedOp>& out);
  /// A locked access, or one to the word of a latch.
  template <bool kCoherent>
  void synchronise(Core& core, const Unfenced& unfenced, const memory::MicroOp& op, std::vector<TimedOp>& out);
  /// `shared`: another core has the line, too.
  template <bool kCoherent>
  Level fetch(Core& core, HashedLine line, const Cache::Place& in_l2, bool write, std::uint64_t extra_flags,
              std::uint64_t& shared, std::vector<TimedOp>& out) {
    if constexpr (kCoherent)
      return fetch_coherently(core, line, in_l2, write, extra_flags, shared, out);
    return fetch_into_l2<false>(core, line, in_l2, extra_flags, out);
  }
  template <bool kCoherent>
  Level fetch_into_l2(Core& core, HashedLine line, const Cache::Place& in_l2, std::uint64_t extra_flags,
                      std::vector<TimedOp>& out);
  template <bool kCoherent>
  void fill_l1(Core& core, const Cache::Place& in_l1, std::uint64_t word, std::vector<TimedOp>& out);
  template <bool kCoherent>
  void fill_l2(Core& core, const Cache::Place& in_l2, std::uint64_t word, std::vector<TimedOp>& out);
  template <bool kCoherent>
  Copies flush(Core& core, const Unfenced& unfenced, std::uint64_t line, bool keep);
  /// Which may have it already.
  void put_into_llc(std::uint64_t victim, HashedLine line, std::vector<TimedOp>& out);

  // coherence.cpp
  /// What the caches of other cores had of a line.
  struct Snooped {
    bool found = false;
    bool dirty = false;
  };
  /// `take`: they lose the line; otherwise they keep it, shared and clean.
  Snooped snoop_others(const Core& asks, HashedLine line, bool take);
  /// As fetch_into_l2, where other cores may have the line. `shared`: one has.
  Level fetch_coherently(Core& core, HashedLine line, const Cache::Place& in_l2, bool write,
                         std::uint64_t extra_flags, std::uint64_t& shared, std::vector<TimedOp>& out);
  /// A store to a line that the core shares: the others lose it.
  Level take_from_others(Core& core, HashedLine line);
  /// L2 has lost a line.
  void lost_by_l2(Core& core, HashedLine line);
  void flush_in_others(Core& core, HashedLine line, bool keep, Copies& copies);

  PlatformParams params_;
  std::uint32_t cores_used_;
  bool coherent_;
  std::vector<Core> cores_;
  std::vector<Unfenced> unfenced_;  ///< by thread
  std::vector<LatestHit> latest_;   ///< by thread
  Cache llc_;
  Sharers sharers_;                  ///< of the lines in L1s and L2s
  std::vector<TimedOp> prefetches_;  ///< of the access at hand
  Counters counters_;
};

// What an access does goes into the loop over a batch: half a dozen calls a line less.
template <bool kCoherent>
[[gnu::always_inline]] inline void Hierarchy::fill_l2(Core& core, const Cache::Place& in_l2, std::uint64_t word,
                                                      std::vector<TimedOp>& out) {
  const std::uint64_t evicted = core.l2.insert(in_l2, word);
  const HashedLine line(evicted & ~Cache::kFlags);
  if (line.line() == Cache::kEmpty) {
    return;
  }
  if constexpr (kCoherent)
    lost_by_l2(core, line);
  // What nobody has asked for is forgotten: a machine that has dropped its prefetch has never had it.
  if ((evicted & (Cache::kUnread | Cache::kDirty)) != Cache::kUnread)
    put_into_llc(line.line() | (evicted & Cache::kDirty), line, out);
}

[[gnu::always_inline]] inline void Hierarchy::put_into_llc(std::uint64_t victim, HashedLine line,
                                                           std::vector<TimedOp>& out) {
  const Cache::Place place = llc_.place_of(line);
  // An L1 that keeps a line which its L2 has lost can make it dirty, and give it to L2 once more. Caches that
  // are not kept coherent may both have one: that of a page table, mostly.
  if (std::uint64_t* const word = llc_.touch(place, line.line()); word != nullptr) {
    *word |= victim & Cache::kDirty;
    return;
  }
  const std::uint64_t evicted = llc_.insert(place, victim);
  if ((evicted & Cache::kDirty) != 0) {
    ++counters_.writebacks;
    out.push_back(TimedOp{evicted & ~Cache::kFlags, 0, kWriteback, kL1, kTlbFirst, 0});
  }
}

template <bool kCoherent>
[[gnu::always_inline]] inline void Hierarchy::fill_l1(Core& core, const Cache::Place& in_l1, std::uint64_t word,
                                                      std::vector<TimedOp>& out) {
  const std::uint64_t victim = core.l1.insert(in_l1, word);
  const HashedLine line(victim & ~Cache::kFlags);
  if ((victim & Cache::kDirty) == 0 || line.line() == Cache::kEmpty) {
    return;
  }
  const Cache::Place in_l2 = core.l2.place_of(line);
  if (std::uint64_t* below = core.l2.touch(in_l2, line.line()); below != nullptr) {
    *below |= Cache::kDirty;
  } else {
    fill_l2<kCoherent>(core, in_l2, line.line() | Cache::kDirty, out);
  }
}

template <bool kCoherent>
[[gnu::always_inline]] inline Level Hierarchy::fetch_into_l2(Core& core, HashedLine line,
                                                             const Cache::Place& in_l2,
                                                             std::uint64_t extra_flags,
                                                             std::vector<TimedOp>& out) {
  const std::uint64_t shared = llc_.remove(llc_.place_of(line), line.line());
  if (shared != Cache::kEmpty) {
    fill_l2<kCoherent>(core, in_l2, shared | (extra_flags & Cache::kPrefetched), out);
    return kLlc;
  }
  fill_l2<kCoherent>(core, in_l2, line.line() | extra_flags, out);
  return kFromMemory;
}

}  // namespace pmsim::machine
