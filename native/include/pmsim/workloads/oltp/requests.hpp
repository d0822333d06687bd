#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/core/scatter.hpp"
#include "pmsim/workloads/oltp/fill_bytes.hpp"
#include "pmsim/workloads/oltp/load_table.hpp"
#include "pmsim/workloads/oltp/transactions.hpp"

namespace pmsim::workloads::oltp {

/// What one recorded request asks for. The order is that of pmsim/requests.py.
enum class RequestKind : std::uint32_t { kRead, kUpdate, kInsert, kDelete, kScan, kReadModifyWrite };
inline constexpr std::uint32_t kRequestKinds = 6;

/// One recorded request, as pmsim/requests.py packs them: 16 bytes, little-endian.
struct Request {
  std::uint64_t key = 0;    ///< rank among the requested keys, from 0 without gaps
  std::uint32_t count = 0;  ///< of a scan, rows; else bytes of the row from its start on, 0: all of them
  RequestKind kind = RequestKind::kRead;
};
static_assert(sizeof(Request) == 16);

/// The requests in these bytes. Throws ConfigError where they are no whole number of requests of known kinds.
[[nodiscard]] std::vector<Request> unpack_requests(std::string_view bytes);

struct RequestsOptions {
  std::vector<Request> requests;
  std::uint64_t rows = 1;          ///< loaded, requested or not; no fewer than requested keys exist then
  std::uint32_t row_bytes = 1000;  ///< at least 8
  engines::ScanMode scan_mode = engines::ScanMode::kGrained;
  Loading loading = Loading::kBulk;
  std::uint64_t seed = 1;
};

[[nodiscard]] inline engines::TableSpec requests_table(std::uint32_t row_bytes) {
  return {"requested", 8, row_bytes};
}

/// A recorded sequence of requests on one table with 8-byte keys and rows of one size; each is a transaction.
///
/// A key exists at the start unless its first request inserts it. Requested keys keep their order and lie
/// evenly among the loaded rows that nobody asks for. An insert of a key that exists replaces its row (a
/// *put*); reads, updates and deletes of keys that do not exist look for them and find nothing.
///
/// What every request finds is known beforehand (`present_`), so an engine that loses or invents a row is
/// found.
template <memory::Memory M>
class Requests final : public Transactions<M> {
 public:
  explicit Requests(RequestsOptions options) : options_(std::move(options)), row_(options_.row_bytes) {
    if (options_.requests.empty())
      throw ConfigError("requests: there are none; name a file with requests");
    std::uint64_t keys = 0;
    for (const Request& request : options_.requests)
      keys = std::max(keys, request.key + 1);
    std::vector<bool> seen(keys, false);
    present_.assign(keys, false);
    for (const Request& request : options_.requests) {
      if (!seen[request.key])
        present_[request.key] = request.kind != RequestKind::kInsert;
      seen[request.key] = true;
    }
    const auto loaded = static_cast<std::uint64_t>(std::ranges::count(present_, true));
    if (loaded > options_.rows)
      throw ConfigError("requests: " + std::to_string(loaded) +
                        " of the keys exist at the start, and there are " + std::to_string(options_.rows) +
                        " rows; choose more, with data_size or rows");
    slots_ = options_.rows + (keys - loaded);
    for (std::uint64_t key = 0; key < keys; ++key) {
      if (!present_[key])
        absent_.push_back(slot_of(key) - absent_.size());
    }
  }

  void load(M& memory, engines::Engine<M>& engine, double fill, Poll poll) override {
    const auto loaded_slot = [this](std::uint64_t row) {
      const auto skipped = std::ranges::upper_bound(absent_, row) - absent_.begin();
      return row + static_cast<std::uint64_t>(skipped);
    };
    table_ = load_table(
        memory, engine, requests_table(options_.row_bytes), options_.rows, fill, options_.loading,
        options_.seed, poll,
        [](std::uint64_t key, std::span<std::byte> payload) { fill_bytes(payload, mix64(key)); }, loaded_slot);
    rows_ = options_.rows;
  }

  Outcome transaction(M& memory, engines::Engine<M>& engine, Random& random) override {
    ensure(next_ < options_.requests.size(), "a run has asked for more requests than there are");
    return serve(memory, engine, next_++, random);
  }

  /// Serves request `number`, below length(), as one transaction.
  Outcome serve(M& memory, engines::Engine<M>& engine, std::uint64_t number, Random& random) {
    const Request& request = options_.requests[number];
    engine.begin(memory);
    const std::uint32_t bytes = execute(memory, engine, request, random);
    engine.commit(memory);
    return {bytes, true};
  }

  /// As many rows are there as the requests have left, in order.
  std::string check(M& memory, engines::Engine<M>& engine) override {
    std::uint64_t found = 0;
    std::uint64_t least = 0;
    engine.begin(memory);
    engine.scan(memory, table_, 0, slots_ + 1, 0, 1, engines::ScanMode::kFullPages,
                [&](std::uint64_t key, std::span<const std::byte>) {
                  ++found;
                  const bool ascends = key >= least && key < slots_;
                  least = key + 1;
                  return ascends;
                });
    engine.commit(memory);
    if (found == rows_)
      return {};
    return "a scan finds " + std::to_string(found) + " rows in sequence, and the requests have left " +
           std::to_string(rows_);
  }

  [[nodiscard]] std::vector<engines::TableId> tables() const override { return {table_}; }
  [[nodiscard]] std::uint64_t rows() const override { return rows_; }
  [[nodiscard]] std::uint64_t length() const override { return options_.requests.size(); }
  /// The key in the table of a requested key.
  [[nodiscard]] std::uint64_t slot_of(std::uint64_t key) const noexcept {
    // Keys are below 2^31 (unpack_requests), and memory bounds rows far below 2^33: the product fits.
    return key * slots_ / present_.size();
  }

 private:
  /// Returns the bytes read or written for the user.
  std::uint32_t execute(M& memory, engines::Engine<M>& engine, const Request& request, Random& random) {
    const std::uint64_t slot = slot_of(request.key);
    const bool exists = present_[request.key];
    const std::span<std::byte> whole(row_);
    const auto part =
        request.count == 0 ? whole : whole.first(std::min<std::size_t>(request.count, whole.size()));
    const auto update = [&](std::span<std::byte> bytes) {
      fill_bytes(bytes, random.next());
      found(engine.update(memory, table_, slot, 0, bytes) == exists);
    };
    const auto size = [&](std::span<std::byte> bytes) {
      return exists ? static_cast<std::uint32_t>(bytes.size()) : 0;
    };
    switch (request.kind) {
      case RequestKind::kRead:
        found(engine.read(memory, table_, slot, 0, part) == exists);
        return size(part);
      case RequestKind::kUpdate:
        update(part);
        return size(part);
      case RequestKind::kReadModifyWrite:
        found(engine.read(memory, table_, slot, 0, part) == exists);
        update(part);
        return 2 * size(part);
      case RequestKind::kInsert:
        if (exists) {
          update(whole);
        } else {
          fill_bytes(whole, random.next());
          found(engine.insert(memory, table_, slot, whole));
          set_present(request.key, true);
        }
        return options_.row_bytes;
      case RequestKind::kDelete:
        found(engine.erase(memory, table_, slot) == exists);
        set_present(request.key, false);
        return size(whole);
      case RequestKind::kScan:
        break;
    }
    const std::uint64_t visited = engine.scan(memory, table_, slot, request.count, 0, options_.row_bytes,
                                              options_.scan_mode, [this](std::uint64_t, auto bytes) {
                                                scanned_ ^= bytes.front();
                                                return true;
                                              });
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(visited * options_.row_bytes, 0xffff'ffff));
  }
  static void found(bool as_expected) { ensure(as_expected, "an engine has lost or invented a row"); }
  void set_present(std::uint64_t key, bool present) {
    if (present_[key] != present)
      rows_ += present ? 1 : std::uint64_t{0} - 1;
    present_[key] = present;
  }

  RequestsOptions options_;
  std::vector<std::byte> row_;         ///< a buffer
  std::vector<bool> present_;          ///< which of the requested keys exist now
  std::vector<std::uint64_t> absent_;  ///< rows loaded below each key that does not exist at the start
  std::uint64_t slots_ = 0;            ///< places for keys: rows loaded and keys inserted
  std::uint64_t rows_ = 0;             ///< in the table now
  std::uint64_t next_ = 0;             ///< request
  engines::TableId table_ = 0;
  std::byte scanned_{};  ///< somebody looks at what a scan reads
};

}  // namespace pmsim::workloads::oltp
