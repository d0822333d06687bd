#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"

namespace pmsim::workloads::oltp {

/// What a transaction did.
struct Outcome {
  std::uint32_t user_bytes = 0;  ///< read or written for the user
  bool committed = true;         ///< false: rolled back, as its specification asks for
};

/// Tables and the transactions that run on them: what a benchmark is, without any driver. One object per run;
/// it holds what the terminals of the benchmark would know (how many rows there are, constants of random
/// generators), never the rows themselves.
template <memory::Memory M>
class Transactions {
 public:
  Transactions() = default;
  Transactions(const Transactions&) = delete;
  Transactions& operator=(const Transactions&) = delete;
  virtual ~Transactions() = default;

  /// Creates and fills the tables, `fill` (0..1] of each leaf; a row is a unit of `poll`. Call detached.
  virtual void load(M& memory, engines::Engine<M>& engine, double fill, Poll poll) = 0;

  /// Runs one whole transaction: begin ... commit or abort. All chance comes from `random`.
  virtual Outcome transaction(M& memory, engines::Engine<M>& engine, Random& random) = 0;

  /// Reads the tables and says, as one sentence, which rule of the benchmark they break; empty: none. Between
  /// transactions only.
  virtual std::string check(M& memory, engines::Engine<M>& engine) = 0;

  /// Tables that load() has made.
  [[nodiscard]] virtual std::vector<engines::TableId> tables() const = 0;
  /// Rows loaded, over all tables.
  [[nodiscard]] virtual std::uint64_t rows() const = 0;
  /// How many transactions there are. A benchmark draws as many as are wanted; a recorded sequence ends, and
  /// every engine is to be measured on the same part of it.
  [[nodiscard]] virtual std::uint64_t length() const { return kEndless; }
  static constexpr std::uint64_t kEndless = ~std::uint64_t{0};
};

}  // namespace pmsim::workloads::oltp
