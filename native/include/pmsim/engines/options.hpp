#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pmsim/core/debug_build.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines {

/// What an engine is built of. Bytes are exact: an engine that does not fit into its tiers refuses with a
/// CapacityError (a ConfigError, core/error.hpp) that names the option: sweeps over capacities end a curve
/// there.
struct EngineOptions {
  std::string engine = "three-tier";  ///< a name of engine_names()
  std::uint64_t dram_bytes = 0;  ///< for pages and their frames' headers; page table and log buffers are extra
  std::uint64_t pmem_bytes = 0;  ///< for pages (and leaves of fptree); 0: the engine uses no PMem for pages
  std::uint64_t ssd_bytes = 0;   ///< for pages; 0: there is none
  std::uint32_t page_bytes = 16384;  ///< power of two, 4 KiB to 64 KiB; mini pages need at most 16 KiB

  // three-tier and its drill-down (van Renen et al. 2018, sections 3.1 to 3.3)
  bool cache_line_grained = true;
  bool mini_pages = true;
  bool pointer_swizzling = true;
  std::string leaf_layout = "sorted";   ///< "sorted" or "hash" (section 5.5)
  std::uint64_t admission_entries = 0;  ///< of the admission set; 0: DRAM's frames and a quarter of PMem's
  /// Spitfire's migration probabilities Dr, Dw, Nr, Nw (dissertation, section 1.3.3).
  std::array<double, 4> migration{1, 1, 1, 1};

  std::string page_write = "ntstore";  ///< how lines of pages reach PMem: "ntstore" or "store+clwb"

  // write-ahead log
  /// "pmem" or "ssd". Nothing is durable with "unwritten", where records are made and dropped, and "none",
  /// where only what a rollback needs is made.
  std::string log_device = "pmem";
  /// The journal and the allocation map of pages on the SSD are there too: with the log, and where no log is
  /// kept, if there is no PMem that they could be on.
  [[nodiscard]] bool meta_on_ssd() const noexcept {
    return log_device == "ssd" || (log_device != "pmem" && pmem_bytes == 0);
  }
  std::string log_algorithm = "poplog";  ///< of blocks/log
  std::string log_layout = "padded";
  std::uint64_t log_bytes = std::uint64_t{64} << 20;  ///< pages are written back as it fills up
  /// Of several threads: "shared", or "per-thread", log_bytes in equal parts (wal/commit_order.hpp).
  /// nvm-direct, nvm-undo have undo logs, one for each thread in any case.
  std::string logs = "shared";
  /// Of several threads with one log on the SSD: "single", each by a write and a flush of its own, one after
  /// the other, or "group", in which whoever finds no group under way writes what all have appended.
  std::string commits = "single";
  /// When dirty pages are written back, where a log in `log_bytes` has to be truncated: "due", as late as can
  /// be, or "paced", evenly over what the log holds (wal/logged_store.hpp).
  std::string cleaning = "due";
  /// DRAM buffer of the open transaction's log records, at least six pages, ten with hashed leaves; 0: 16
  /// pages, or a tenth of a small log.
  std::uint64_t log_buffer_bytes = 0;

  /// nvm-undo: CPU cycles of a call of the transaction library (blocks/undo/types.hpp).
  std::uint32_t library_cycles = 0;

  /// file-bm: CPU cycles of read() and write() besides their copies (entry, file system, return), and the
  /// copies of each: 2, through a buffer of the kernel, or 1.
  std::uint32_t system_call_cycles = 0;
  std::uint32_t system_call_copies = 2;

  /// CPU cycles per operation, and per transaction (its begin and end, its driver), besides those of the
  /// instructions simulated; a calibration, the same for all engines.
  std::uint32_t cpu_cycles = 0;
  std::uint32_t transaction_cycles = 0;

  /// Threads whose transactions run on the engine (Engine::work_as), and how readers of pages hold the latches
  /// that they then need: "shared", "optimistic" (memory.hpp), or "none", as if threads never met on
  /// a page.
  std::uint32_t threads = 1;
  std::string latches = "optimistic";
  /// Whether caches have lines of several threads to keep coherent, with latches and without.
  [[nodiscard]] bool shares_lines() const noexcept { return threads > 1; }
  /// How a buffer manager keeps a page where it is while threads use it: "counted", in its frame's head, or
  /// "optimistic", not at all: who reads it learns from its latch that it has gone.
  std::string fixes = "counted";
  std::uint64_t seed = 1;
  /// Buffer managers without latches check how their pages are used (buffer/debugging.hpp). Costs a run no
  /// time of the simulated machine, and changes none of its decisions.
  bool debug_pages = kDebugBuild;
};

/// One table: a B+-tree from unsigned keys to payloads of one size.
struct TableSpec {
  std::string name;
  std::uint32_t key_bytes = 8;  ///< 4 or 8
  std::uint32_t payload_bytes = 8;
};
using TableId = std::uint16_t;

/// Where the regions of an engine lie, and which options they were laid out for: what a restart needs to find
/// its data. Plain values. It is the superblock of a real engine: written once, when all regions are there, and
/// known to a restart before anything else.
struct EnginePlace {
  memory::Address dram = 0;
  memory::Address pmem = 0;
  memory::Address ssd = 0;
  memory::Address log = 0;
  memory::Address log_buffer = 0;  ///< DRAM
  memory::Address meta = 0;        ///< anything else, all in one region per engine
  memory::Address micro_log = 0;   ///< PMem; of a buffer manager whose meta is on the SSD
  memory::Address latches = 0;     ///< DRAM; of pages, where threads need them
  std::optional<EngineOptions> made_with;
};

/// Throws ConfigError where options of a restart lay out other regions than those the engine was made with:
/// names the option, what it is now and what it was.
void check_restart(const EngineOptions& options, const EnginePlace& place);

}  // namespace pmsim::engines
