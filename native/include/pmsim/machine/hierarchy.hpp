#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/prefetcher.hpp"
#include "pmsim/machine/timed_op.hpp"
#include "pmsim/machine/tlb.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::machine {

/// The time-free half of a machine: TLBs, cache tags and prefetchers of all cores. Turns micro-operations into
/// TimedOps. Because it needs no clock, several timing lanes can share one hierarchy (design, section 1).
///
/// L2 holds what was fetched; the last-level cache receives its victims (non-inclusive, Skylake-SP). Caches of
/// different cores are not kept coherent: a line that two cores write is timed as if each owned it.
class Hierarchy {
 public:
  Hierarchy(const PlatformParams& params, std::uint32_t threads);

  /// Appends the timed form of all of `stream` to `out`.
  /// `poll` is called now and then where the stream is long (the recovery of an engine is one), and may throw.
  void classify(std::uint32_t thread, const memory::Stream& stream, std::vector<TimedOp>& out,
                const std::function<void()>& poll = {});

  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

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
    explicit Core(const PlatformParams& params);
    Tlb tlb;
    Cache l1;
    Cache l2;
    Prefetcher prefetcher;
    std::array<Flushed, 64> recently_flushed{};  ///< direct-mapped by line
    bool looks_ahead = true;                     ///< its last few dozen operations did not all hit L1
    bool hits_l1 = true;                         ///< some of them did
  };

  /// Loads, stores and streaming stores that did not hit L1, over all cores.
  [[nodiscard]] std::int64_t beyond_l1() const noexcept {
    return counters_.loads + counters_.stores + counters_.stream_stores - counters_.l1_hits;
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
  void classify(Core& core, Unfenced& unfenced, LatestHit& latest, const memory::MicroOp& op,
                std::vector<TimedOp>& out);
  void prefetch_tags(const Core& core, const memory::MicroOp* first, const memory::MicroOp* last) const;
  Translation translate(Core& core, std::uint64_t address, std::vector<TimedOp>& out) {
    const std::uint64_t page = core.tlb.page_of(address);
    return core.tlb.is_last(page) ? kTlbFirst : translate_other(core, page, out);
  }
  /// Of another page than the access before.
  Translation translate_other(Core& core, std::uint64_t page, std::vector<TimedOp>& out);
  Level read_page_table(Core& core, HashedLine line, std::vector<TimedOp>& out);
  Level access(Core& core, const Unfenced& unfenced, std::uint64_t line, bool write, std::uint8_t& flags,
               std::vector<TimedOp>& out);
  void push_prefetches(std::vector<TimedOp>& out);
  Level fetch_into_l2(Core& core, HashedLine line, const Cache::Place& in_l2, std::uint64_t extra_flags,
                      std::vector<TimedOp>& out);
  void fill_l1(Core& core, const Cache::Place& in_l1, std::uint64_t word, std::vector<TimedOp>& out);
  void fill_l2(Core& core, const Cache::Place& in_l2, std::uint64_t word, std::vector<TimedOp>& out);
  /// What a flush has found of a line.
  struct Copies {
    bool own = false;  ///< in L1 or L2 of the core
    bool dirty = false;
  };
  Copies flush(Core& core, const Unfenced& unfenced, std::uint64_t line, bool keep);

  PlatformParams params_;
  std::uint32_t cores_used_;
  std::vector<Core> cores_;
  std::vector<Unfenced> unfenced_;  ///< by thread
  std::vector<LatestHit> latest_;   ///< by thread
  Cache llc_;
  std::vector<std::uint64_t> prefetches_;  ///< of the access at hand, from memory
  Counters counters_;
};

}  // namespace pmsim::machine
