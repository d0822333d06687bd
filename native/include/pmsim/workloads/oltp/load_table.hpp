#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/poll.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/core/scatter.hpp"
#include "pmsim/engines/engine.hpp"

namespace pmsim::workloads::oltp {

/// How a table gets its rows.
enum class Loading : std::uint8_t {
  kBulk,     ///< in the order of its keys: leaves are filled evenly and lie as their keys do
  kInserts,  ///< row by row in random order: leaves have split, and lie where there was room
};

/// A table of `rows` rows with the keys `key_of(0)` < `key_of(1)` < ..., whose payloads are written by
/// `new_row(key, payload)`. `fill` (0..1] is the load factor of kBulk; splits lead to about ln 2 = 0.69 by
/// themselves (Yao, Acta Informatica 9, 1978). kInserts commits each row, so pages then lie on the tiers on
/// which the engine has left them. A row is a unit of `poll`. Call detached.
template <memory::Memory M, typename NewRow, typename KeyOf = std::identity>
[[nodiscard]] engines::TableId load_table(M& memory, engines::Engine<M>& engine, const engines::TableSpec& spec,
                                          std::uint64_t rows, double fill, Loading loading, std::uint64_t seed,
                                          Poll& poll, NewRow new_row, KeyOf key_of = {}) {
  class Ascending final : public engines::RowSource {
   public:
    Ascending(std::uint64_t rows, NewRow& new_row, KeyOf& key_of, Poll& poll)
        : rows_(rows), new_row_(new_row), key_of_(key_of), poll_(poll) {}
    [[nodiscard]] std::uint64_t rows() const override { return rows_; }
    std::uint64_t next(std::span<std::byte> payload) override {
      const std::uint64_t key = key_of_(next_++);
      new_row_(key, payload);
      poll_.worked();
      return key;
    }

   private:
    std::uint64_t rows_;
    NewRow& new_row_;
    KeyOf& key_of_;
    Poll& poll_;
    std::uint64_t next_ = 0;
  };
  poll.expect(rows);
  if (loading == Loading::kBulk) {
    Ascending all(rows, new_row, key_of, poll);
    return engine.load(memory, spec, all, fill);
  }
  Ascending none(0, new_row, key_of, poll);
  const engines::TableId table = engine.load(memory, spec, none, fill);
  std::vector<std::byte> payload(spec.payload_bytes);
  // Another order than that of popularity, whose scatter has the seed itself.
  const Scatter order(rows, mix64(seed));
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t key = key_of(order(row));
    new_row(key, payload);
    engine.begin(memory);
    ensure(engine.insert(memory, table, key, payload), "an engine refuses a new key while it is loaded");
    engine.commit(memory);
    poll.worked();
  }
  return table;
}

}  // namespace pmsim::workloads::oltp
