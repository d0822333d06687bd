#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/cpu_work.hpp"
#include "pmsim/workloads/oltp/fill_bytes.hpp"
#include "pmsim/workloads/oltp/load_table.hpp"
#include "pmsim/workloads/oltp/transactions.hpp"

namespace pmsim::workloads::oltp {

struct TableScanOptions {
  std::uint64_t rows = 1;
  std::uint32_t row_bytes = 128;
  std::uint64_t rows_at_once = 0;  ///< rows of a transaction; 0: the whole table
  std::uint32_t row_cycles = 0;    ///< CPU cycles that a query spends on a row, besides reading it
  engines::ScanMode scan_mode = engines::ScanMode::kGrained;
  Loading loading = Loading::kBulk;
  std::uint64_t seed = 1;
};

[[nodiscard]] inline engines::TableSpec scanned_table(std::uint32_t row_bytes) {
  return {"facts", 8, row_bytes};
}

/// A query that reads a whole table, row by row in the order of the keys, and works on each row: the sequential
/// scans of decision support. A transaction is the next piece of the scan, which begins anew behind the last
/// row.
template <memory::Memory M>
class TableScan final : public Transactions<M> {
 public:
  explicit TableScan(const TableScanOptions& options)
      : options_(options),
        at_once_(options.rows_at_once == 0 ? options.rows : std::min(options.rows_at_once, options.rows)) {}

  void load(M& memory, engines::Engine<M>& engine, double fill, Poll poll) override {
    table_ = load_table(
        memory, engine, scanned_table(options_.row_bytes), options_.rows, fill, options_.loading, options_.seed,
        poll, [](std::uint64_t key, std::span<std::byte> payload) { fill_bytes(payload, mix64(key) << 8); });
  }

  Outcome transaction(M& memory, engines::Engine<M>& engine, Random&) override {
    const std::uint64_t rows = std::min(at_once_, options_.rows - next_);
    std::uint64_t expected = next_;
    std::byte sum{};
    engine.begin(memory);
    const std::uint64_t visited =
        engine.scan(memory, table_, next_, rows, 0, options_.row_bytes, options_.scan_mode,
                    [&](std::uint64_t key, std::span<const std::byte> row) {
                      ensure(key == expected++, "a scan of a table has missed a row");
                      sum ^= row.front() ^ row.back();
                      engines::cpu_work(memory, options_.row_cycles);
                      return true;
                    });
    engine.commit(memory);
    ensure(visited == rows, "a scan of a table has ended early");
    scanned_ ^= sum;
    next_ = next_ + rows == options_.rows ? 0 : next_ + rows;
    return {static_cast<std::uint32_t>(std::min<std::uint64_t>(rows * options_.row_bytes, 0xffff'ffff)), true};
  }

  /// Every row is there, once, in order, as it was loaded.
  std::string check(M& memory, engines::Engine<M>& engine) override {
    std::uint64_t expected = 0;
    std::vector<std::byte> loaded(options_.row_bytes);
    engine.begin(memory);
    engine.scan(memory, table_, 0, options_.rows + 1, 0, options_.row_bytes, engines::ScanMode::kFullPages,
                [&](std::uint64_t key, std::span<const std::byte> row) {
                  fill_bytes(loaded, mix64(key) << 8);
                  return key == expected && std::ranges::equal(row, loaded) && ++expected != 0;
                });
    engine.commit(memory);
    if (expected == options_.rows)
      return {};
    return "a scan finds " + std::to_string(expected) + " of " + std::to_string(options_.rows) +
           " rows in sequence, as they were loaded";
  }

  [[nodiscard]] std::vector<engines::TableId> tables() const override { return {table_}; }
  [[nodiscard]] std::uint64_t rows() const override { return options_.rows; }

 private:
  TableScanOptions options_;
  std::uint64_t at_once_;
  std::uint64_t next_ = 0;
  engines::TableId table_ = 0;
  std::byte scanned_{};  ///< somebody looks at what a scan reads
};

}  // namespace pmsim::workloads::oltp
