#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/block_device.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/dram_channel.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/pmem_module.hpp"

namespace pmsim::machine {

/// Everything behind the last-level cache: channels, DRAM, PMem modules, the DRAM cache of memory mode and the
/// block device. Maps lines to channels and modules. All times are at the controller.
class MemorySystem {
 public:
  /// `pmem_footprint`: bytes of PMem in use. In memory mode the DRAM cache starts with what long use of them leaves.
  MemorySystem(const PlatformParams& params, Counters& counters, std::uint64_t seed, std::uint64_t pmem_footprint);

  Picoseconds read(std::uint64_t line, Picoseconds now);

  /// Write that arrives at `now`. Returns when it was accepted (from then on it is durable), or kNever: then a Grant
  /// for `token` will follow from some drain().
  Picoseconds write(std::uint64_t line, Picoseconds now, const WriteToken& token);

  /// Moves one line out of a module's write pending queue, at that module's next_drain(), and lets waiting lines in.
  /// Appends what was granted to `grants`; the modules named there may now drain too.
  void drain(std::size_t module, std::vector<Grant>& grants);

  [[nodiscard]] std::vector<PmemModule>& modules() noexcept { return modules_; }
  [[nodiscard]] BlockDevice& block_device() noexcept { return block_device_; }

  /// The module that the last write() went to: its drain time may have changed.
  [[nodiscard]] std::size_t last_module() const noexcept { return last_module_; }

 private:
  struct Place {
    std::size_t module;
    std::uint64_t local_line;
  };
  [[nodiscard]] Place place_in_pmem(std::uint64_t line) const noexcept;
  Picoseconds write_pmem(const Place& place, Picoseconds now, const WriteToken& token);
  [[nodiscard]] DramChannel& channel_of(std::uint64_t line) noexcept;
  Picoseconds read_memory_mode(std::uint64_t line, Picoseconds now);
  Picoseconds write_memory_mode(std::uint64_t line, Picoseconds now, const WriteToken& token);
  [[nodiscard]] std::uint64_t cached_in(std::uint64_t set) const;

  PlatformParams params_;
  Counters* counters_;
  std::vector<DramChannel> channels_;
  std::vector<PmemModule> modules_;
  BlockDevice block_device_;
  std::uint64_t interleave_lines_;
  std::uint64_t dram_interleave_lines_;
  std::uint64_t footprint_lines_;
  std::size_t last_module_ = 0;
  /// Lines on their way to full write pending queues of one controller's channels. It looks at `pmem_ingress` of them
  /// at a time, in order of arrival: behind these, lines wait even if their own channel is idle (head-of-line
  /// blocking, which is what makes writes in pieces of one stripe, 4 KiB, slow).
  struct Ingress {
    std::size_t admitted = 0;
    std::deque<WaitingLine> behind;
  };
  [[nodiscard]] Ingress& ingress_of(std::size_t module) noexcept;
  std::vector<Ingress> ingress_;
  std::size_t ingress_capacity_;
  /// Memory mode: which line a set of the direct-mapped DRAM cache holds, where it differs from the initial content.
  std::unordered_map<std::uint64_t, std::uint64_t> memory_mode_sets_;
};

}  // namespace pmsim::machine
