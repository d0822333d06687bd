#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/time.hpp"
#include "pmsim/machine/block_device.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/divider.hpp"
#include "pmsim/machine/dram_channel.hpp"
#include "pmsim/machine/memory_link.hpp"
#include "pmsim/machine/memory_mode.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/pmem_module.hpp"
#include "pmsim/machine/requests.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

/// Everything behind the last-level cache: channels, DRAM, PMem modules, the DRAM cache of memory mode and the
/// block device. Maps lines to channels and modules. All times are at the controller.
///
/// A caller acts at a time of its own, `acts_at`, and its request arrives at the controller later, at `now`.
/// What a module does with the lines of its write pending queue shows only when somebody looks: it is made up
/// for, up to `acts_at`, before the next access to its channel. Only while lines wait for a place in the queue
/// does each of its steps count at once, because it lets somebody go on: then the module is an agent that acts
/// by drain().
class MemorySystem {
 public:
  /// `pmem_footprint`: bytes of PMem in use. In memory mode the DRAM cache starts with what long use of them
  /// leaves.
  MemorySystem(const PlatformParams& params, Counters& counters, std::uint64_t seed,
               std::uint64_t pmem_footprint);

  /// `thread` has asked for it. `ahead`: by so much `now` is later than that of others who act at the same
  /// time.
  Picoseconds read(std::uint64_t line, Picoseconds now, Picoseconds acts_at,
                   std::uint32_t thread = LineRequest::kNobody, Picoseconds ahead = 0);

  /// Read for a load that can wait. Returns when its data leave the controller, or kNever: it finds the read
  /// pending queue of its module full, and an Admission for `token` will follow from some admit().
  Picoseconds load(std::uint64_t line, Picoseconds now, Picoseconds acts_at, ReadToken token);

  /// Asks the host for what reading this line will look at.
  void look_ahead(std::uint64_t line) const noexcept {
    if (memory::medium_of(line * memory::kLineBytes) == memory::Medium::kPmem && !dram_cache_ &&
        !modules_.empty()) {
      const Place place = place_in_pmem(line);
      modules_[place.module].look_ahead(place.local_line);
    }
  }

  /// Write that arrives at `now`. Returns when it is acknowledged (it is durable by then), or kNever: then a
  /// Grant for `token` will follow from some drain().
  Picoseconds write(std::uint64_t line, Picoseconds now, Picoseconds acts_at, const WriteToken& token);

  /// What an access leaves behind that needs no clock: what DRAM holds in memory mode, and the translations of
  /// a module that is read.
  void access_untimed(std::uint64_t line, bool write);

  /// When a module wants to drain() because lines wait for it; kNever where none does.
  [[nodiscard]] Picoseconds next_drain(std::size_t module) const noexcept {
    return modules_[module].has_waiting() ? modules_[module].next_drain() : kNever;
  }
  /// Moves one line out of a module's write pending queue, at that module's next_drain(), and lets waiting
  /// lines in. Appends what was granted to `grants`.
  void drain(std::size_t module, std::vector<Grant>& grants);

  /// When a read enters a module because a place has become free for it; kNever where none waits.
  [[nodiscard]] Picoseconds next_admission(std::size_t module) const noexcept {
    return modules_[module].reads().next_admission();
  }
  /// Lets one waiting read into a module's read pending queue, at that module's next_admission().
  Admission admit(std::size_t module);

  /// The modules whose next_drain() or next_admission() may have changed since the last call: bit i is module
  /// i.
  [[nodiscard]] std::uint32_t take_changed() noexcept { return std::exchange(changed_, 0); }
  [[nodiscard]] bool has_changed() const noexcept { return changed_ != 0; }

  /// Makes up for what modules did before `time`. Returns when the last line left a queue that nobody waited
  /// for.
  Picoseconds catch_up_all(Picoseconds time);

  /// All modules of PMem, or the block device, pause from `now` on. ConfigError for DRAM.
  void stall(memory::Medium medium, Picoseconds now, Picoseconds duration);
  /// From `now` on they take `percent` hundredths of their times. ConfigError for DRAM and below 1.
  void slow(memory::Medium medium, Picoseconds now, std::int64_t percent);

  /// For a command of somebody who acts at `acts_at`.
  [[nodiscard]] BlockDevice& block_device(Picoseconds acts_at) {
    acts(acts_at);
    return block_device_;
  }

  /// From now on `listener`, which must stay, hears of every line that is asked of this memory: in memory mode
  /// of those that the program asks for, not of what the DRAM cache makes of them.
  void listen(RequestListener& listener) noexcept {
    listener_ = &listener;
    special_ = true;
  }

 private:
  /// Somebody acts at `time`. Nobody acts before who has acted: channels and modules would serve first what
  /// comes last, and be idle, or busy, at times that are over.
  void acts(Picoseconds time) {
    ensure(time >= clock_, "a core or a module acts before one that has acted already");
    clock_ = time;
  }
  /// A write is told of when it is sent, as a read is, and may be longer on its way.
  [[nodiscard]] Picoseconds ahead_of_reads(Picoseconds arrives, Picoseconds sent) const noexcept {
    return std::max<Picoseconds>(arrives - sent - params_.core.shared_read_latency / 2, 0);
  }
  struct Place {
    std::size_t module;
    std::uint64_t local_line;
  };
  [[nodiscard]] Place place_in_pmem(std::uint64_t line) const noexcept;
  void tell(LineRequest::Operation operation, std::uint64_t line, Picoseconds now, std::uint32_t thread);
  Picoseconds read_pmem(std::uint64_t line, Picoseconds now, Picoseconds acts_at);
  void read_pmem_untimed(std::uint64_t line) {
    const Place place = place_in_pmem(line);
    modules_[place.module].read_untimed(place.local_line);
  }
  Picoseconds write_pmem(const Place& place, std::uint64_t line, Picoseconds now, Picoseconds acts_at,
                         const WriteToken& token);
  void catch_up(std::size_t module, Picoseconds time) {
    if (modules_[module].next_drain() < time) {
      drain_until(modules_[module], time);
    }
  }
  void drain_until(PmemModule& behind, Picoseconds time);
  void wait(const WaitingLine& waiting);
  /// The channel that a DRAM line lives on, for an access at `acts_at`.
  [[nodiscard]] DramChannel& channel_of(std::uint64_t line, Picoseconds acts_at);
  Picoseconds read_memory_mode(std::uint64_t line, Picoseconds now, Picoseconds acts_at);
  Picoseconds write_memory_mode(std::uint64_t line, Picoseconds now, Picoseconds acts_at,
                                const WriteToken& token);
  /// As write(): what a write displaces, it waits for.
  Picoseconds write_back_victim(const MemoryModeCache::Held& victim, Picoseconds now, Picoseconds acts_at,
                                const WriteToken& token);
  /// The same for a read that takes its place; returns when that has it. Where the module is busy that is an
  /// estimate, as long as those that wait take at most: without it reads would leave ever more of them behind.
  Picoseconds make_room(const MemoryModeCache::Held& victim, Picoseconds now, Picoseconds acts_at);

  PlatformParams params_;
  Counters* counters_;
  std::vector<DramChannel> channels_;
  std::vector<PmemModule> modules_;
  std::vector<std::int64_t> victims_waiting_;  ///< by module: lines that reads have displaced
  BlockDevice block_device_;
  MemoryLink link_;
  Divider interleave_lines_;
  Divider dram_interleave_lines_;
  Divider module_count_;
  Divider channel_count_;
  std::uint32_t changed_ = 0;
  Picoseconds last_drain_ = 0;
  Picoseconds clock_ = 0;  ///< when somebody has last acted
  /// Lines on their way to full write pending queues, by the slice of the last-level cache that their address
  /// hashes to. `pmem_credits` lines of a slice compete for places; behind these, in order of arrival, lines
  /// wait even if their own channel is idle (head-of-line blocking, which is what makes writes in pieces of one
  /// stripe, 4 KiB, slow).
  struct Slice {
    std::size_t competing = 0;  ///< waiting in the modules
    std::deque<WaitingLine> behind;
  };
  std::vector<Slice> slices_;
  Modulus slice_count_;
  std::size_t credits_;
  std::optional<MemoryModeCache> dram_cache_;  ///< in memory mode
  RequestListener* listener_ = nullptr;
  /// In memory mode, without PMem, behind a link, or somebody listens: one test where there is nothing of this.
  bool special_ = false;
};

}  // namespace pmsim::machine
