#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pmsim/blocks/log/file_header.hpp"
#include "pmsim/blocks/log/poplog.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/engines/wal/horizon.hpp"
#include "pmsim/engines/wal/sector_log.hpp"
#include "turns.hpp"

namespace pmsim::crash {

/// The points of the log that a crash of an engine can tell. Not those of its creation, since an engine is
/// known only when its tables have been loaded, long after; nor those that keep stale words from completing a
/// torn entry, for which the log's own subjects choose their payloads: the bits of an engine's records never
/// agree by chance. The log on SSD flushes its new head with the next entry at the latest, which does not reuse
/// the space behind it, since a reserve is free (wal/wal.hpp).
inline constexpr std::array kPmemLogPoints{
    blocks::log::FileHeader::kSites[1], blocks::log::FileHeader::kSites[3], blocks::log::FileHeader::kSites[4],
    blocks::log::PopLog::kSites[0], blocks::log::PopLog::kSites[1]};
inline constexpr std::array kSsdLogPoints{engines::wal::SectorLog::kSites[1]};
/// Of several logs, besides those of each that the subjects with one log tell. The fence is missed where the
/// horizon is lost and the head of the log that is truncated next is not.
inline constexpr std::array kPmemLogsPoints{blocks::log::PopLog::kSites[0], blocks::log::PopLog::kSites[1],
                                            engines::wal::Horizon::kPmemSites[0],
                                            engines::wal::Horizon::kPmemSites[1]};
inline constexpr std::array kSsdLogsPoints{kSsdLogPoints[0], engines::wal::Horizon::kSsdSites[0]};

/// Three threads instead of one, with a log each, which has room for the largest transaction, with splits, and
/// its rollback.
inline void give_logs(engines::EngineOptions& options) {
  options.threads = 3;
  options.logs = "per-thread";
  options.log_bytes = 9 * options.log_buffer_bytes * options.threads + engines::wal::Horizon::kBytes;
}
/// As EngineSubject::Size::logged_before: the first of these logs is full.
inline constexpr double kFillsALog = 210e3;

/// Transactions, checkpoints and clean restarts of a storage engine with tiny capacities, by one thread or by
/// several in turn, or beside each other: while one's commit is under way, from any of its persistence steps in
/// the log on, another runs, and where that waits for the first one, or while its own commit is under way, the
/// first one goes on. Both use rows of their own, as if they had locked them.
///
/// Promise: acknowledged transactions are there whole, those in flight are there whole or not at all (not at
/// all before commit() is called, and where they are aborted), and every data structure is sound.
///
/// recover() restarts the engine and commits one transaction more, on a row of its own: a restart must leave
/// the log in a state in which it can be used, and the checker's crashes during recovery hit that as well.
class EngineSubject final : public Subject {
 public:
  struct Size {
    std::uint32_t transactions = 6;
    std::uint32_t most_operations = 3;  ///< of a transaction
    std::uint32_t payload_bytes = 900;  ///< four rows fill a page of 4 KiB
    std::uint32_t rows = 2;             ///< loaded
    std::uint32_t keys = 12;            ///< many hits, and three leaves and a root when all are there
    bool checkpoints = true;
    bool beside = false;  ///< transactions run beside others
    /// Large programs with even seeds begin when so many bytes have been logged: the log has been truncated as
    /// it filled, and soon begins to reuse its space.
    double logged_before = 0;
    /// Of engines without pages in DRAM. Programs with even seeds have two rows in a page: pages are freed and
    /// used again, several in a row, also by transactions that do not commit.
    [[nodiscard]] static Size in_place(std::uint64_t seed) {
      if (seed % 2 != 0)
        return {.checkpoints = false};
      return {
          .transactions = 24, .most_operations = 6, .payload_bytes = 1800, .rows = 10, .checkpoints = false};
    }
  };

  EngineSubject(const engines::EngineOptions& options, const Size& size, std::uint64_t seed, Scale scale);

  void create(memory::SimMemory& memory) override;

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(memory::SimMemory& memory, std::uint32_t index) override;

  void step(memory::SimMemory& memory) override;

  [[nodiscard]] std::unique_ptr<Recovered> recover(memory::SimMemory& memory) const override;

  [[nodiscard]] std::string check(const Recovered& recovered, memory::SimMemory&) const override;

  /// Goes on with the engine that has restarted: a transaction, a checkpoint, a transaction.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override;

  [[nodiscard]] std::string describe(std::uint32_t index) const override;

 private:
  using Rows = std::map<std::uint64_t, std::vector<std::byte>>;

  struct Operation {
    enum class Kind : std::uint8_t { kUpdate, kInsert, kErase };
    Kind kind;
    std::uint64_t key;
    std::uint32_t offset;
    std::vector<std::byte> bytes;
  };
  enum class Kind : std::uint8_t { kCommit, kAbort, kCheckpoint, kRestart };
  struct Step {
    Kind kind;
    std::vector<Operation> operations;
    std::vector<Step> beside;  ///< none or one
  };
  EngineSubject(const EngineSubject& before, std::unique_ptr<engines::Engine<memory::SimMemory>> engine,
                const Rows& found);

  /// Part `part` of a step, by a thread of its own.
  void run(memory::SimMemory& memory, const Step& step, std::size_t part, std::uint32_t thread);
  /// What a crash may find besides what is committed: those in flight, each of them or both.
  void note_in_flight(std::size_t part, const Step* step);
  static void apply(const Step& step, Rows& rows);
  /// The other thread goes on, if it has not ended, until it is this one's turn again.
  bool change_turns(memory::SimMemory& memory);
  /// Each thread has its own flushes and fences.
  void work_as(memory::SimMemory& memory, std::uint32_t thread);
  [[nodiscard]] const engines::EngineKind<memory::SimMemory>& kind() const;

  /// Few words that are not zero: what is equal before and after makes no durable images.
  [[nodiscard]] std::vector<std::byte> payload(std::uint64_t mark);

  /// A transaction, or two. `rows` are those before it, and then those after it. The first transactions only
  /// insert.
  [[nodiscard]] Step next_step(Rows& rows, bool fill);
  /// Without the rows of `others`.
  [[nodiscard]] Step transaction(Rows& rows, bool fill, const std::vector<Operation>& others);

  [[nodiscard]] static std::string describe(const Step& step);

  void run(memory::SimMemory& memory, const Operation& operation);

  engines::EngineOptions options_;
  Size size_;
  Random random_;
  std::vector<Step> plan_;
  std::unique_ptr<engines::Engine<memory::SimMemory>> engine_;
  engines::TableId table_ = 0;
  std::optional<engines::EnginePlace> place_;
  memory::Stream ignored_;
  Rows committed_;
  std::vector<Rows> allowed_;  ///< as well, while commits are under way
  std::uint64_t promises_ = 0;
  std::array<const Step*, 2> in_flight_{};  ///< whose commit() is under way, of the two of a step
  std::array<std::uint32_t, 2> threads_{};  ///< which run them
  Turns* turns_ = nullptr;
  std::uint32_t waits_ = 0;
};

}  // namespace pmsim::crash
