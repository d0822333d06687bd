#pragma once

#include <array>
#include <cstdint>

#include "pmsim/blocks/run/levels.hpp"
#include "pmsim/blocks/site.hpp"
#include "pmsim/blocks/undo/undo_log.hpp"

namespace pmsim::blocks::run {

/// How a new run comes to count (section 4.2, Fig. 4).
enum class FailureAtomicity : std::uint8_t {
  kNone,         ///< data flushed and fenced, then Run_Ptr stored, flushed and fenced ("No FA")
  kIndividual,   ///< data flushed and fenced, then Run_Ptr changed in a transaction
  kTransaction,  ///< one transaction, which snapshots Run_Ptr and the run before they are written
};

/// Makes a run that was written to a free place count, together with whatever else a new Run_Ptr says.
///
/// - begin(), claim() for the part of the run that will be written, then its pairs, then publish().
/// - publish() returns when all of it is DURABLE. A crash before leaves Run_Ptr, and so all valid runs, as
/// before.
///
/// A snapshot of a free run protects nothing: whatever it holds, Run_Ptr says that it is free. The transaction
/// of PMDK makes it all the same, since its containers snapshot what they write.
class Publisher {
 public:
  static constexpr Site kDataFlush = 980, kDataFence = 981, kPointerFlush = 982, kPointerFence = 983;
  static constexpr std::array kNoneSites{
      SiteInfo{kDataFlush, "publish: write the run back"},
      SiteInfo{kDataFence, "publish: wait for the run before what says that it counts"},
      SiteInfo{kPointerFlush, "publish: write Run_Ptr back"},
      SiteInfo{kPointerFence, "publish: wait for Run_Ptr"},
  };
  /// A program has those of its undo log besides, with kTransaction no others.
  static constexpr std::array kIndividualSites{
      SiteInfo{kDataFlush, "publish: write the run back"},
      SiteInfo{kDataFence, "publish: wait for the run before what says that it counts",
               "the fences of Run_Ptr's snapshot come before Run_Ptr changes"},
  };

  /// `log` is used by all but kNone, and outlives the publisher.
  explicit Publisher(FailureAtomicity atomicity, undo::UndoLog* log = nullptr)
      : atomicity_(atomicity), log_(log) {
    ensure(atomicity == FailureAtomicity::kNone || log != nullptr,
           "a publisher of transactions without an undo log");
  }

  template <Memory M>
  void begin(M& memory, const Levels& levels) {
    if (atomicity_ == FailureAtomicity::kTransaction) {
      log_->begin(memory);
      log_->add_range(memory, levels.pointer(), sizeof(std::uint64_t));
    }
  }
  /// Throws UndoLogFull where the log has no room for the snapshot; the transaction is aborted then.
  template <Memory M>
  void claim(M& memory, Address run, std::uint64_t pairs) {
    if (atomicity_ != FailureAtomicity::kTransaction)
      return;
    try {
      log_->add_range(memory, run, bytes_of(pairs));
    } catch (const undo::UndoLogFull&) {
      log_->abort(memory);
      throw;
    }
  }

  /// The pairs are in place. `word`: the new Run_Ptr.
  template <Memory M>
  void publish(M& memory, const Levels& levels, Address run, std::uint64_t pairs, std::uint64_t word) {
    memory.template store<std::uint64_t>(run, pairs);
    if (atomicity_ != FailureAtomicity::kTransaction) {
      memory.flush(run, bytes_of(pairs), memory::FlushKind::kClwb, kDataFlush);
      memory.sfence(kDataFence);
    }
    if (atomicity_ == FailureAtomicity::kIndividual) {
      log_->begin(memory);
      log_->add_range(memory, levels.pointer(), sizeof word);
    }
    memory.template store<std::uint64_t>(levels.pointer(), word);
    if (atomicity_ == FailureAtomicity::kNone) {
      memory.flush(levels.pointer(), sizeof word, memory::FlushKind::kClwb, kPointerFlush);
      memory.sfence(kPointerFence);
    } else {
      log_->commit(memory);
    }
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t bytes_of(std::uint64_t pairs) noexcept {
    return kLineBytes + pairs * kPairBytes;
  }

  FailureAtomicity atomicity_;
  undo::UndoLog* log_;
};

}  // namespace pmsim::blocks::run
