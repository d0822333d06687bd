#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/wal/wal.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/workloads/oltp/choice.hpp"
#include "pmsim/workloads/parameters.hpp"

namespace pmsim::workloads::oltp {

/// A storage engine with a loaded database on simulated memory: what the workloads `oltp` and `restart` share.
/// Everything in here runs detached, without taking time, unless the caller attaches a stream.
class Session {
 public:
  using Memory = memory::SimMemory;
  using Counters = std::map<std::string, double>;

  /// Reads the parameters of engine and benchmark, and creates both. `check`: the engine checks how its pages
  /// are used, too (EngineOptions::debug_pages).
  Session(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed,
          bool check = false);

  /// Whether there are no more transactions than somebody has recorded.
  [[nodiscard]] bool is_recorded() const { return transactions_->length() != Transactions<Memory>::kEndless; }
  /// Whether there is another transaction.
  [[nodiscard]] bool has_next() const { return begun_ < transactions_->length(); }
  /// Throws ConfigError where these are fewer than a run takes.
  void require(std::uint64_t warmup, std::uint64_t timed_warmup, std::uint64_t operations) const;
  /// Throws ConfigError where the engine keeps nothing that a restart could find.
  void require_restart() const { engines::wal::Wal::require_durable(engine_options_); }

  /// Loads the tables. Throws CapacityError where the engine cannot hold them.
  void load(const Watch& watch);

  [[nodiscard]] std::uint32_t threads() const noexcept { return static_cast<std::uint32_t>(random_.size()); }
  [[nodiscard]] bool shares_lines() const noexcept { return engine_options_.shares_lines(); }
  /// Runs one transaction of a thread.
  Outcome transaction(std::uint32_t thread) {
    engine_->work_as(thread);
    ++begun_;
    return transactions_->transaction(memory_, *engine_, random_[thread]);
  }
  /// First fills DRAM with whole pages, as loading through the buffer manager leaves it: "all newly-allocated
  /// pages start out on SSD" and are "loaded directly and completely into DRAM" (van Renen et al., SIGMOD 2018,
  /// section 4.2). Then runs up to `limit` transactions, threads in turn, until the engine is steady
  /// (SteadyState). A recorded sequence is always run up to `limit`, so that all engines are measured on the
  /// same part of it. Returns how many, and whether the engine was steady in the end.
  struct WarmUp {
    std::uint64_t transactions = 0;
    std::uint64_t user_bytes = 0;
    bool steady = false;
  };
  WarmUp warm_up(std::uint64_t limit, const Watch& watch);

  /// Ends the engine, cleanly or as a power failure does, and forgets DRAM. Then only restart() may follow.
  /// `watch` is told during a clean end, a checkpoint, which belongs to its warm-up.
  void stop(bool clean, const Watch& watch);
  /// The engine's recovery. On the attached stream.
  void restart();

  /// What the benchmark says about its tables, and the engine about its structures; empty: all is well.
  /// Reads everything: what was cached before is not any more.
  [[nodiscard]] std::string check();

  [[nodiscard]] Memory& memory() noexcept { return memory_; }
  [[nodiscard]] const engines::Engine<Memory>& engine() const noexcept { return *engine_; }
  [[nodiscard]] std::uint64_t rows() const { return transactions_->rows(); }
  [[nodiscard]] bool counts_wear() const noexcept { return counts_wear_; }
  [[nodiscard]] std::uint64_t pmem_bytes() const;

 private:
  /// Returns how many pages DRAM has taken.
  double fill_dram(const Watch& watch);
  [[nodiscard]] static memory::SimOptions memory_options(Parameters& parameters,
                                                         const machine::PlatformParams& platform,
                                                         bool& counts_wear);

  bool counts_wear_ = false;
  Memory memory_;
  engines::EngineOptions engine_options_;
  std::unique_ptr<engines::Engine<Memory>> engine_;
  engines::EnginePlace place_;
  std::unique_ptr<Transactions<Memory>> transactions_;
  double fill_ = 1;
  std::vector<Random> random_;  ///< of each thread
  std::uint64_t begun_ = 0;     ///< transactions, since the load
};

/// How the lines of the page region have been written, as facts with the prefix "wear_": lines written at least
/// once, writes, the most of one line, quantiles over the lines written, and the writes of the line with rank
/// 1, 2, 5, 10, 20, ... by writes.
void add_wear_facts(std::vector<std::uint32_t> line_writes, std::map<std::string, double>& facts);

}  // namespace pmsim::workloads::oltp
