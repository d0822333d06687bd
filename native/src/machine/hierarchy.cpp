#include "pmsim/machine/hierarchy.hpp"

#include <algorithm>
#include <string>

#include "pmsim/core/error.hpp"
#include "pmsim/machine/page_table.hpp"
#include "pmsim/memory/section.hpp"

namespace pmsim::machine {

using memory::LatchMode;
using memory::OpKind;

namespace {

constexpr std::size_t kLookAhead = 32;             ///< operations whose tags are asked for together
constexpr std::size_t kVictimSteps = 4;            ///< lines between asking for a set of L2 and looking at it
constexpr std::uint32_t kCoresInReach = 2;         ///< cores whose TLBs and L2 tags fit into the host's L2
constexpr std::ptrdiff_t kPollEvery = 1 << 20;     ///< operations, some 50 ms
constexpr std::uint32_t kMergedInstructions = 64;  ///< keeps the window's granularity when L1 hits are merged

/// What an access counts, by its Level.
constexpr std::array kHits{&Counters::l1_hits, &Counters::l2_hits, &Counters::llc_hits, &Counters::memory_reads,
                           &Counters::core_transfers};

void push(std::vector<TimedOp>& out, OpKind kind, std::uint64_t line, std::uint32_t instructions, Level level,
          Translation translation, std::uint8_t flags) {
  out.push_back(TimedOp{line, instructions, static_cast<std::uint8_t>(kind), level, translation, flags});
}

/// Adds one independent L1 hit to the run of hits at the end of `out`, or starts a run.
void push_hit(std::vector<TimedOp>& out) {
  if (!out.empty()) {
    TimedOp& last = out.back();
    if (last.kind == static_cast<std::uint8_t>(OpKind::kCompute) && last.line == 0 && last.flags == 0 &&
        last.instructions < kMergedInstructions) {
      ++last.instructions;
      return;
    }
  }
  push(out, OpKind::kCompute, 0, 1, kL1, kTlbFirst, 0);
}

}  // namespace

Hierarchy::Core::Core(const PlatformParams& params, std::uint32_t number)
    : index(number),
      tlb(params.tlb),
      l1(params.l1.size, params.l1.ways),
      l2(params.l2.size, params.l2.ways),
      prefetcher(params.prefetcher) {}

Hierarchy::Hierarchy(const PlatformParams& params, std::uint32_t threads, bool coherent)
    : params_(params),
      cores_used_(std::min(threads, static_cast<std::uint32_t>(params.core.cores))),
      coherent_(coherent && cores_used_ > 1),
      unfenced_(threads),
      latest_(threads),
      llc_(params.llc.size, params.llc.ways, memory::kLineBytes, params.llc.slices),
      sharers_(coherent_ ? cores_used_ * static_cast<std::size_t>(params.l1.size + params.l2.size) /
                               memory::kLineBytes
                         : 0,
               cores_used_) {
  cores_.reserve(cores_used_);
  for (std::uint32_t core = 0; core < cores_used_; ++core) {
    cores_.emplace_back(params, core);
  }
}

template <bool kCoherent>
[[gnu::always_inline]] inline Level Hierarchy::access(Core& core, const Unfenced& unfenced, std::uint64_t line,
                                                      bool write, std::uint8_t& flags,
                                                      std::vector<TimedOp>& out) {
  const std::uint64_t dirty = write ? Cache::kDirty : 0;
  const HashedLine hashed(line);
  const Cache::Place in_l1 = core.l1.place_of(hashed);
  if (std::uint64_t* word = core.l1.touch(in_l1, line); word != nullptr) {
    if ((*word & Cache::kPrefetched) != 0) {
      *word &= ~(Cache::kPrefetched | Cache::kUnread);
      flags |= kTimedInFlight;
    }
    if (kCoherent && write && (*word & Cache::kShared) != 0) {
      *word |= dirty;
      return take_from_others(core, hashed);
    }
    *word |= dirty;
    return kL1;
  }
  Level level = kL2;
  std::uint64_t shared = 0;
  const Cache::Place in_l2 = core.l2.place_of(hashed);
  if (std::uint64_t* word = core.l2.touch(in_l2, line); word != nullptr) {
    if ((*word & Cache::kPrefetched) != 0) {
      *word &= ~(Cache::kPrefetched | Cache::kUnread);
      flags |= kTimedInFlight;
    }
    if constexpr (kCoherent) {
      shared = *word & Cache::kShared;
      if (write && shared != 0) {
        level = take_from_others(core, hashed);
        shared = 0;
      }
    }
  } else {
    level = fetch<kCoherent>(core, hashed, in_l2, write, 0, shared, out);
    const Flushed& flushed = core.recently_flushed[line % core.recently_flushed.size()];
    if (level == kFromMemory && flushed.line == line) {
      flags |=
          flushed.thread == &unfenced && flushed.fences < unfenced.fences ? kTimedAfterFence : kTimedAfterFlush;
    }
  }
  fill_l1<kCoherent>(core, in_l1, line | dirty | shared, out);
  core.prefetcher.observe(line, [&](std::uint64_t wanted) {
    const HashedLine ahead(wanted);
    const Cache::Place place = core.l2.place_of(ahead);
    if (core.l2.touch(place, wanted) != nullptr)
      return;
    std::uint64_t ignored = 0;
    const Level from =
        fetch<kCoherent>(core, ahead, place, false, Cache::kPrefetched | Cache::kUnread, ignored, out);
    prefetches_.push_back(TimedOp{wanted, 0, kHwPrefetch, from, kTlbFirst, 0});
  });
  return level;
}

/// Behind the access that has caused them: they issue when it does.
inline void Hierarchy::push_prefetches(std::vector<TimedOp>& out) {
  if (prefetches_.empty()) {
    return;
  }
  out.insert(out.end(), prefetches_.begin(), prefetches_.end());
  prefetches_.clear();
}

template <bool kCoherent>
Translation Hierarchy::translate_other(Core& core, std::uint64_t page, std::vector<TimedOp>& out) {
  switch (core.tlb.translate(page)) {
    case Tlb::Found::kFirst:
      return kTlbFirst;
    case Tlb::Found::kSecond:
      ++counters_.tlb_second_hits;
      return kTlbSecond;
    case Tlb::Found::kNowhere:
      break;
  }
  ++counters_.tlb_walks;
  const Level upper = core.tlb.knows_table(page_table_of(page))
                          ? kL1
                          : read_page_table<kCoherent>(core, HashedLine(upper_table_line(page)), out);
  return walk(upper, read_page_table<kCoherent>(core, HashedLine(page_table_line(page)), out));
}

/// The walker reads through L2.
template <bool kCoherent>
Level Hierarchy::read_page_table(Core& core, HashedLine line, std::vector<TimedOp>& out) {
  const Cache::Place in_l2 = core.l2.place_of(line);
  if (core.l2.touch(in_l2, line.line()) != nullptr)
    return kL2;
  std::uint64_t shared = 0;
  return fetch<kCoherent>(core, line, in_l2, false, 0, shared, out);
}

template <bool kCoherent>
Hierarchy::Copies Hierarchy::flush(Core& core, const Unfenced& unfenced, std::uint64_t line, bool keep) {
  Copies copies;
  const HashedLine hashed(line);
  if (keep) {
    for (Cache* cache : {&core.l1, &core.l2, &llc_}) {
      if (std::uint64_t* word = cache->touch(cache->place_of(hashed), line); word != nullptr) {
        copies.dirty = copies.dirty || (*word & Cache::kDirty) != 0;
        *word &= ~Cache::kDirty;
      }
    }
  } else {
    for (Cache* cache : {&core.l1, &core.l2, &llc_}) {
      const std::uint64_t word = cache->remove(cache->place_of(hashed), line);
      if (word != Cache::kEmpty) {
        copies.dirty = copies.dirty || (word & Cache::kDirty) != 0;
        copies.own = copies.own || cache != &llc_;
      }
    }
    core.recently_flushed[line % core.recently_flushed.size()] = {line, &unfenced, unfenced.fences};
  }
  if constexpr (kCoherent) {
    flush_in_others(core, hashed, keep, copies);
  }
  return copies;
}

template <bool kCoherent>
[[gnu::noinline]] void Hierarchy::synchronise(Core& core, const Unfenced& unfenced, const memory::MicroOp& op,
                                              std::vector<TimedOp>& out) {
  const std::uint64_t line = op.address / memory::kLineBytes;
  const bool atomic = op.kind == OpKind::kAtomic;
  const bool acquires = op.kind == OpKind::kAcquire;
  // Of a trace that somebody else has written.
  if (!atomic && op.flags > static_cast<std::uint8_t>(LatchMode::kAttempt))
    throw ConfigError("a micro-operation holds a latch in mode " + std::to_string(op.flags) +
                      ", which does not exist; record the trace again with `pmsim trace record`");
  const LatchMode mode = atomic ? LatchMode::kShared : static_cast<LatchMode>(op.flags);
  OpKind kind = OpKind::kAtomic;
  if (mode == LatchMode::kOptimistic) {
    kind = OpKind::kLoad;
  } else if (memory::writes(mode) && !acquires) {
    kind = OpKind::kStore;
  }
  ++(kind == OpKind::kLoad ? counters_.loads : kind == OpKind::kStore ? counters_.stores : counters_.atomics);
  std::uint8_t flags = 0;
  const Translation translation = translate<kCoherent>(core, op.address, out);
  const Level level = access<kCoherent>(core, unfenced, line, kind != OpKind::kLoad, flags, out);
  ++(counters_.*kHits[level]);
  push(out, kind, line, 1, level, translation, flags);
  push_prefetches(out);
  if (atomic)
    return;
  counters_.latches += acquires ? 1 : 0;
  const std::uint8_t latch = acquires                         ? kLatchAcquire
                             : mode == LatchMode::kOptimistic ? kLatchValidate
                                                              : kLatchRelease;
  out.push_back(TimedOp{line, 0, latch, static_cast<std::uint8_t>(mode), kTlbFirst, 0});
}

/// The tags of a big last-level cache do not fit into the host's own caches. A look ahead over a few dozen
/// operations makes their misses overlap: for the sets where lines will be looked up, and for those that take
/// what these lines will push out of L2. With more cores their TLBs and L2 tags do not fit either.
void Hierarchy::prefetch_tags(const Core& core, const memory::MicroOp* first,
                              const memory::MicroOp* last) const {
  // Where lines go that may push another one out of L2. That one is looked at some steps later, when the set
  // has come.
  std::array<Cache::Place, kLookAhead> filled;
  std::size_t count = 0;
  const auto prefetch_for_victim = [&](const Cache::Place& in_l2) {
    const std::uint64_t victim = core.l2.victim(in_l2) & ~Cache::kFlags;
    if (victim != Cache::kEmpty) {
      llc_.prefetch_fill(llc_.place_of(HashedLine(victim)));
    }
  };
  std::uint64_t last_line = ~std::uint64_t{0};
  std::uint64_t last_page = ~std::uint64_t{0};
  const bool many_cores = cores_used_ > kCoresInReach;
  const bool hits_l1 = core.hits_l1;  // otherwise the look ahead need not ask
  for (const memory::MicroOp* op = first; op != last; ++op) {
    const bool access = op->kind <= OpKind::kStreamStore || op->kind == OpKind::kPrefetch;
    const std::uint64_t line = op->address / memory::kLineBytes;
    if (!access || line == last_line) {
      continue;
    }
    last_line = line;
    const HashedLine hashed(line);
    if (hits_l1 && core.l1.may_hold(core.l1.place_of(hashed))) {
      continue;
    }
    llc_.prefetch_set(llc_.place_of(hashed));
    const std::uint64_t page = core.tlb.page_of(op->address);
    if (many_cores && page != last_page) {
      last_page = page;
      if (core.tlb.prefetch(HashedLine(page))) {
        core.l2.prefetch_fill(core.l2.place_of(HashedLine(page_table_line(page))));
      }
    }
    if (op->kind != OpKind::kStreamStore) {
      // Built where it stays: a copy would read together what has just been written part by part, and wait.
      Cache::Place& in_l2 = filled[count++];
      in_l2 = core.l2.place_of(hashed);
      core.l2.prefetch_fill(in_l2);
      if (count > kVictimSteps) {
        prefetch_for_victim(filled[count - 1 - kVictimSteps]);
      }
    } else if (many_cores) {
      core.l2.prefetch_set(core.l2.place_of(hashed));
    }
  }
  for (std::size_t index = count - std::min(count, kVictimSteps); index < count; ++index) {
    prefetch_for_victim(filled[index]);
  }
}

template <bool kCoherent>
[[gnu::always_inline]] inline void Hierarchy::classify(Core& core, Unfenced& unfenced, LatestHit& latest,
                                                       const memory::MicroOp& op, std::vector<TimedOp>& out) {
  const std::uint64_t line = op.address / memory::kLineBytes;
  std::uint8_t flags = op.flags & kTimedDependent;
  if (flags != 0 && latest.line != LatestHit::kNone &&
      (op.kind == OpKind::kLoad || op.kind == OpKind::kCompute)) {
    // Its value is needed after all. It has taken its window slot in a run of hits.
    push(out, OpKind::kLoad, latest.line, 0, kL1, kTlbFirst, 0);
    latest.line = LatestHit::kNone;
  }
  switch (op.kind) {
    case OpKind::kLoad:
    case OpKind::kPrefetch: {
      const bool prefetch = op.kind == OpKind::kPrefetch;
      const Translation translation = translate<kCoherent>(core, op.address, out);
      const Level level = access<kCoherent>(core, unfenced, line, false, flags, out);
      if (!prefetch) {
        ++counters_.loads;
        ++(counters_.*kHits[level]);
        if (level == kL1 && flags == 0 && translation == kTlbFirst) {
          push_hit(out);
          latest.line = line;
          break;
        }
        latest.line = LatestHit::kNone;
      } else if (level == kL1) {
        if ((flags & kTimedInFlight) != 0)
          core.l1.touch(line)[0] |= Cache::kPrefetched;  // it still is, for whoever loads it
        push_hit(out);
        break;
      } else {
        core.l1.touch(line)[0] |= Cache::kPrefetched;
      }
      push(out, op.kind, line, 1, level, translation, flags);
      push_prefetches(out);
      break;
    }
    case OpKind::kStore: {
      ++counters_.stores;
      const Translation translation = translate<kCoherent>(core, op.address, out);
      const Level level = access<kCoherent>(core, unfenced, line, true, flags, out);
      ++(counters_.*kHits[level]);
      push(out, op.kind, line, 1, level, translation, flags);
      push_prefetches(out);
      break;
    }
    case OpKind::kStreamStore: {
      ++counters_.stream_stores;
      persist(unfenced, line);
      const Translation translation = translate<kCoherent>(core, op.address, out);
      // A cached copy is dropped; where only part of the line is written, what was dirty goes to memory first.
      const Copies copies = flush<kCoherent>(core, unfenced, line, false);
      if (copies.dirty && op.bytes < memory::kLineBytes) {
        ++counters_.writebacks;
        out.push_back(TimedOp{line, 0, kWriteback, kL1, kTlbFirst, 0});
      }
      flags |= copies.own && op.bytes >= memory::kLineBytes ? kTimedCached : 0;
      out.push_back(TimedOp{line, 1, static_cast<std::uint8_t>(op.kind), static_cast<std::uint8_t>(op.bytes),
                            translation, flags});
      break;
    }
    case OpKind::kClwb:
    case OpKind::kClflushOpt:
    case OpKind::kClflush: {
      ++counters_.flushes;
      persist(unfenced, line);
      if (params_.controller.eadr != 0) {
        push_hit(out);
        break;
      }
      const bool keep = op.kind == OpKind::kClwb && params_.core.flush_keeps_line != 0;
      if (flush<kCoherent>(core, unfenced, line, keep).dirty) {
        flags |= kTimedDirty;
      }
      push(out, op.kind, line, 1, kL1, kTlbFirst, flags);
      break;
    }
    case OpKind::kSfence:
    case OpKind::kMfence:
      fence(unfenced);
      push(out, op.kind, 0, 1, kL1, kTlbFirst, 0);
      break;
    case OpKind::kCompute:
      if ((op.flags & memory::kEntersSection) != 0) [[unlikely]] {
        // Of a trace that somebody else has written.
        if (op.site >= memory::kSections)
          throw ConfigError("a micro-operation enters section " + std::to_string(op.site) +
                            ", which does not exist; record the trace again with `pmsim trace record`");
        out.push_back(TimedOp{op.site, 0, kSectionMark, kL1, kTlbFirst, 0});
        break;
      }
      push(out, op.kind, op.address, op.bytes, kL1, kTlbFirst, flags | (op.flags & kTimedSerialising));
      break;
    case OpKind::kAtomic:
    case OpKind::kAcquire:
    case OpKind::kRelease:
      synchronise<kCoherent>(core, unfenced, op, out);
      break;
    case OpKind::kBlockRead:
    case OpKind::kBlockWrite:
    case OpKind::kBlockFlush:
    case OpKind::kBlockGather:
    case OpKind::kBlockCommit:
      push(out, op.kind, op.address, op.bytes, kL1, kTlbFirst, 0);
      break;
    case OpKind::kOperationBegin:
      push(out, op.kind, 0, 0, kL1, kTlbFirst, op.flags & (kTimedSerialising | kTimedDependent));
      break;
    case OpKind::kOperationEnd:
      push(out, op.kind, op.bytes, 0, kL1, kTlbFirst, op.flags & kTimedDependent);
      break;
    default:
      throw SimulationError("pmsim bug: unknown micro-operation kind");
  }
}

void Hierarchy::classify(std::uint32_t thread, const memory::Stream& stream, std::vector<TimedOp>& out,
                         const std::function<void()>& poll) {
  coherent_ ? classify_all<true>(thread, stream, out, poll) : classify_all<false>(thread, stream, out, poll);
}

template <bool kCoherent>
void Hierarchy::classify_all(std::uint32_t thread, const memory::Stream& stream, std::vector<TimedOp>& out,
                             const std::function<void()>& poll) {
  Core& core = cores_[thread % cores_used_];
  LatestHit& latest = latest_[thread];
  const memory::MicroOp* const end = stream.data() + stream.size();
  std::ptrdiff_t polled = 0;
  for (const memory::MicroOp* first = stream.data(); first != end;) {
    if (first - stream.data() - polled >= kPollEvery) {
      polled = first - stream.data();
      if (poll)
        poll();
    }
    const memory::MicroOp* last = first + std::min<std::ptrdiff_t>(end - first, kLookAhead);
    if (core.looks_ahead) {
      prefetch_tags(core, first, last);
    }
    const std::int64_t before = beyond_l1();
    const std::int64_t hits_before = counters_.l1_hits;
    for (; first != last; ++first) {
      classify<kCoherent>(core, unfenced_[thread], latest, *first, out);
    }
    core.looks_ahead = beyond_l1() != before;
    core.hits_l1 = counters_.l1_hits != hits_before;
  }
}

}  // namespace pmsim::machine
