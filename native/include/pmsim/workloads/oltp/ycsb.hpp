#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/scatter.hpp"
#include "pmsim/workloads/oltp/fill_bytes.hpp"
#include "pmsim/workloads/oltp/load_table.hpp"
#include "pmsim/workloads/oltp/transactions.hpp"
#include "pmsim/workloads/oltp/zipf.hpp"

namespace pmsim::workloads::oltp {

inline constexpr std::uint32_t kYcsbFields = 10;
inline constexpr std::uint32_t kYcsbFieldBytes = 100;
inline constexpr std::uint32_t kYcsbRowBytes = kYcsbFields * kYcsbFieldBytes;

[[nodiscard]] inline engines::TableSpec ycsb_table() { return {"usertable", 4, kYcsbRowBytes}; }

/// Shares of the operations, in per cent; the rest are point lookups.
struct YcsbMix {
  std::uint32_t updates = 0;
  std::uint32_t inserts = 0;
  std::uint32_t scans = 0;
  std::uint32_t read_modify_writes = 0;
  bool latest = false;  ///< popular are the keys that were inserted last, instead of keys anywhere
};

/// The standard mixes of Cooper et al., SoCC 2010, table 1, and of the distributed workload files: "a" to "f".
[[nodiscard]] inline YcsbMix ycsb_mix(std::string_view name) {
  if (name == "a")
    return {.updates = 50};
  if (name == "b")
    return {.updates = 5};
  if (name == "c")
    return {};
  if (name == "d")
    return {.inserts = 5, .latest = true};
  if (name == "e")
    return {.inserts = 5, .scans = 95};
  if (name == "f")
    return {.read_modify_writes = 50};
  throw ConfigError("YCSB has no workload \"" + std::string(name) + "\"; choose a, b, c, d, e or f");
}

struct YcsbOptions {
  std::uint64_t rows = 1;
  YcsbMix mix;
  bool whole_rows = false;          ///< lookups and updates are of all fields of a row
  double zipf = 1;                  ///< exponent; 0: uniform
  std::uint32_t scan_length = 100;  ///< at most; a scan's length is uniform from 1 on
  bool full_scan = false;           ///< a scan reads the whole table
  engines::ScanMode scan_mode = engines::ScanMode::kGrained;
  Loading loading = Loading::kBulk;
  std::uint64_t seed = 1;
};

/// YCSB as in van Renen et al. 2018, section 5.2: one table with 4-byte keys and ten fields of 100 bytes; each
/// operation is a transaction on one field, uniformly chosen, of rows chosen by Zipf's law over scattered keys,
/// or on whole rows (YCSB's own readallfields and writeallfields).
///
/// Keys are 0 .. rows-1. Where a mix inserts, the n-th row lies at a pseudo-random place among all 4-byte keys,
/// as with YCSB's own insertorder=hashed: what is new, and what D reads most, comes to any leaf, and scans meet
/// it. A field's bytes follow from its key until it is updated.
template <memory::Memory M>
class Ycsb final : public Transactions<M> {
 public:
  explicit Ycsb(const YcsbOptions& options)
      : options_(options),
        rows_(options.rows),
        zipf_(options.rows, options.zipf),
        scatter_(options.mix.inserts > 0 ? kKeys : options.rows, options.seed) {
    if (options.rows == 0 || options.rows >= std::uint64_t{1} << 32)
      throw ConfigError("rows: " + std::to_string(options.rows) +
                        " rows with 4-byte keys; choose 1 to 2^32 - 1");
  }

  void load(M& memory, engines::Engine<M>& engine, double fill, Poll poll) override {
    std::vector<std::uint32_t> keys;
    if (options_.mix.inserts > 0) {
      keys.resize(options_.rows);
      for (std::uint64_t row = 0; row < options_.rows; ++row)
        keys[row] = static_cast<std::uint32_t>(scatter_(row));
      std::ranges::sort(keys);
    }
    last_ = keys.empty() ? options_.rows - 1 : keys.back();
    table_ = load_table(memory, engine, ycsb_table(), options_.rows, fill, options_.loading, options_.seed,
                        poll, new_row, [&keys](std::uint64_t row) { return keys.empty() ? row : keys[row]; });
  }

  Outcome transaction(M& memory, engines::Engine<M>& engine, Random& random) override {
    const auto dice = static_cast<std::uint32_t>(random.below(100));
    const YcsbMix& mix = options_.mix;
    const auto drawn = static_cast<std::uint32_t>(random.below(kYcsbFields)) * kYcsbFieldBytes;
    const std::uint32_t field = options_.whole_rows ? 0 : drawn;
    engine.begin(memory);
    auto bytes = static_cast<std::uint32_t>(buffer().size());
    if (dice < mix.updates) {
      update(memory, engine, key(random), field, random);
    } else if (dice < mix.updates + mix.inserts) {
      insert(memory, engine);
      bytes = kYcsbRowBytes;
    } else if (dice < mix.updates + mix.inserts + mix.scans) {
      bytes = scan(memory, engine, field, random);
    } else if (dice < mix.updates + mix.inserts + mix.scans + mix.read_modify_writes) {
      const std::uint64_t row = key(random);
      read(memory, engine, row, field);
      update(memory, engine, row, field, random);
      bytes *= 2;
    } else {
      read(memory, engine, key(random), field);
    }
    engine.commit(memory);
    return {bytes, true};
  }

  /// Every row is there, once, in order.
  std::string check(M& memory, engines::Engine<M>& engine) override {
    std::uint64_t found = 0, next = 0;
    engine.begin(memory);
    engine.scan(memory, table_, 0, rows_ + 1, 0, 8, engines::ScanMode::kFullPages,
                [&](std::uint64_t key, std::span<const std::byte>) {
                  const bool right = key >= next && is_key(key);
                  found += right ? 1 : 0;
                  next = key + 1;
                  return right;
                });
    engine.commit(memory);
    if (found == rows_ && next == last_ + 1)
      return {};
    return "YCSB: a scan finds " + std::to_string(found) + " of " + std::to_string(rows_) + " keys in sequence";
  }

  [[nodiscard]] std::vector<engines::TableId> tables() const override { return {table_}; }
  [[nodiscard]] std::uint64_t rows() const override { return rows_; }
  [[nodiscard]] engines::TableId table() const noexcept { return table_; }

  /// What a row holds when it is new.
  static void new_row(std::uint64_t key, std::span<std::byte> payload) noexcept {
    fill_bytes(payload, mix64(key) << 8);
  }

 private:
  static constexpr std::uint64_t kKeys = std::uint64_t{1} << 32;

  [[nodiscard]] std::uint64_t key(Random& random) const noexcept {
    const std::uint64_t rank = zipf_(random);
    return scatter_(options_.mix.latest ? rows_ - 1 - rank : rank);
  }
  [[nodiscard]] bool is_key(std::uint64_t key) const noexcept {
    return options_.mix.inserts > 0 ? scatter_.inverse(key) < rows_ : key < rows_;
  }
  void read(M& memory, engines::Engine<M>& engine, std::uint64_t row, std::uint32_t field) {
    ensure(engine.read(memory, table_, row, field, buffer()), "an engine has lost a row of YCSB");
  }
  void update(M& memory, engines::Engine<M>& engine, std::uint64_t row, std::uint32_t field, Random& random) {
    fill_bytes(buffer(), random.next());
    ensure(engine.update(memory, table_, row, field, buffer()), "an engine has lost a row of YCSB");
  }
  void insert(M& memory, engines::Engine<M>& engine) {
    if (rows_ >= (std::uint64_t{1} << 32) - 1)
      throw ConfigError("YCSB has run out of 4-byte keys; choose fewer rows or operations");
    const std::uint64_t key = scatter_(rows_);
    new_row(key, row_);
    ensure(engine.insert(memory, table_, key, row_), "an engine refuses a new key of YCSB");
    last_ = std::max(last_, key);
    ++rows_;
  }
  std::uint32_t scan(M& memory, engines::Engine<M>& engine, std::uint32_t field, Random& random) {
    const std::uint64_t from = options_.full_scan ? 0 : key(random);
    const std::uint64_t limit = options_.full_scan ? rows_ : 1 + random.below(options_.scan_length);
    std::byte sum{};
    std::uint64_t reached = 0;
    const auto part = static_cast<std::uint32_t>(buffer().size());
    const std::uint64_t visited = engine.scan(memory, table_, from, limit, field, part, options_.scan_mode,
                                              [&](std::uint64_t key, std::span<const std::byte> bytes) {
                                                sum ^= bytes.front();
                                                reached = key;
                                                return true;
                                              });
    // How many rows lie behind a key is known where keys have no gaps; else that a shorter scan was at the end.
    ensure(options_.mix.inserts > 0 ? visited == limit || reached == last_
                                    : visited == std::min(limit, rows_ - from),
           "a scan of YCSB has missed rows");
    scanned_ ^= sum;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(visited * part, 0xffff'ffff));
  }
  /// Of what an operation reads or writes.
  [[nodiscard]] std::span<std::byte> buffer() noexcept {
    return std::span(row_).first(options_.whole_rows ? kYcsbRowBytes : kYcsbFieldBytes);
  }

  YcsbOptions options_;
  std::uint64_t rows_;
  std::uint64_t last_ = 0;  ///< the highest key
  Zipf zipf_;
  Scatter scatter_;
  engines::TableId table_ = 0;
  std::array<std::byte, kYcsbRowBytes> row_{};
  std::byte scanned_{};  ///< somebody looks at what a scan reads
};

}  // namespace pmsim::workloads::oltp
