#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pmsim/engines/options.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines {

/// Rows for bulk loading, in strictly ascending order of their keys.
class RowSource {
 public:
  RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;
  virtual ~RowSource() = default;
  [[nodiscard]] virtual std::uint64_t rows() const = 0;
  /// The next row: returns its key and fills `payload` (payload_bytes of the table).
  virtual std::uint64_t next(std::span<std::byte> payload) = 0;
};

/// Whether a scan uses cache-line-grained pages, or is told to load pages whole (the hint of section 5.4.2),
/// and whether it then prefetches the next row of the page while it works on one ("a simple software
/// prefetching scheme that tries to fetch in advance the next element to be processed within a data block",
/// Mustafa et al., section VI.B).
enum class ScanMode : std::uint8_t { kGrained, kFullPages, kPrefetchNext };

/// A storage engine as workloads see it: tables of rows, transactions. One virtual call per operation; what is
/// inside is templates. Keys are unsigned; those of a 4-byte table are below 2^32. Every operation emits its
/// micro-operations to the stream attached to the memory; operation_begin and operation_end are the caller's.
///
/// All operations but load, and check, belong to a transaction: begin ... commit or abort. Virtual threads take
/// turns between transactions, each of which is executed at once; what several of them wait for each other is
/// in the latches (latches.hpp) that the engine acquires in their names. Of engines with write-ahead logs for
/// each thread, or with groups, others may also run while a commit is under way (the crash checker has it so).
template <memory::Memory M>
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// A new table with these rows, `fill` (0..1] of each leaf used. Durable on return; not logged; call
  /// detached.
  virtual TableId load(M& memory, const TableSpec& spec, RowSource& rows, double fill) = 0;

  /// The thread, of EngineOptions::threads, whose transactions run from now on, or whose commit() goes on.
  virtual void work_as(std::uint32_t thread) { static_cast<void>(thread); }
  virtual void begin(M& memory) = 0;
  /// DURABLE on return.
  virtual void commit(M& memory) = 0;
  /// The commit of this transaction calls `placed` as soon as it has its place in a log that all share: nobody
  /// who has seen what it has done will be durable before it is. Not called where there is no such log.
  virtual void on_placed(std::function<void()> placed) { static_cast<void>(placed); }
  /// Takes back what the transaction has done.
  virtual void abort(M& memory) = 0;

  /// Copies [offset, offset + into.size()) of the payload; false where there is no such key.
  virtual bool read(M& memory, TableId table, std::uint64_t key, std::uint32_t offset,
                    std::span<std::byte> into) = 0;
  virtual bool update(M& memory, TableId table, std::uint64_t key, std::uint32_t offset,
                      std::span<const std::byte> bytes) = 0;
  /// False where the key exists already.
  virtual bool insert(M& memory, TableId table, std::uint64_t key, std::span<const std::byte> payload) = 0;
  virtual bool erase(M& memory, TableId table, std::uint64_t key) = 0;
  using Visit = std::function<bool(std::uint64_t key, std::span<const std::byte> bytes)>;
  /// Calls visit(key, [offset, offset + bytes) of the payload) in ascending order from the first key >= `from`,
  /// until it returns false or `limit` rows have been visited. Returns how many. visit must not use the engine.
  virtual std::uint64_t scan(M& memory, TableId table, std::uint64_t from, std::uint64_t limit,
                             std::uint32_t offset, std::uint32_t bytes, ScanMode mode, const Visit& visit) = 0;

  /// Brings every committed change to its home tier and truncates the log. Between transactions only.
  virtual void checkpoint(M& memory) = 0;
  /// A clean end: checkpoint, and nothing volatile is needed any more.
  virtual void shutdown(M& memory) = 0;

  /// Counters since the start, by name (pmsim/kinds/counters.py says what they mean); monotone unless their
  /// name says otherwise.
  [[nodiscard]] virtual std::map<std::string, double> counters() const = 0;
  /// Checks the invariants of all its data structures. Returns what is wrong, as one sentence, or nothing.
  [[nodiscard]] virtual std::string check(M& memory) = 0;
  [[nodiscard]] virtual const EnginePlace& place() const = 0;
};

/// One registered engine. To add one: write its file in native/src/engines and add a row to its registry.cpp.
template <memory::Memory M>
struct EngineKind {
  std::string_view name;
  std::string_view title;  ///< how it uses the tiers
  memory::Medium home;     ///< where every page has a place: what data must fit into
  /// A new, empty engine. Throws ConfigError where the options cannot be.
  std::unique_ptr<Engine<M>> (*create)(M& memory, const EngineOptions& options);
  /// The engine that create() made, after shutdown() or a crash: runs its recovery on `memory`.
  /// `options` are those of create(); others are refused where regions depend on them (check_restart).
  std::unique_ptr<Engine<M>> (*restart)(M& memory, const EngineOptions& options, const EnginePlace& place);
};

template <memory::Memory M>
[[nodiscard]] std::span<const EngineKind<M>> engine_kinds() noexcept;

/// Throws ConfigError for an unknown name.
template <memory::Memory M>
[[nodiscard]] const EngineKind<M>& engine_named(std::string_view name);

}  // namespace pmsim::engines
