#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/scatter.hpp"
#include "pmsim/workloads/oltp/load_table.hpp"
#include "pmsim/workloads/oltp/transactions.hpp"
#include "pmsim/workloads/oltp/zipf.hpp"

namespace pmsim::workloads::oltp {

struct Uniform8Options {
  std::uint64_t rows = 1;
  double zipf = 0;  ///< exponent; 0: uniform, as in the experiment of the FPTree
  Loading loading = Loading::kBulk;
  std::uint64_t seed = 1;
};

[[nodiscard]] inline engines::TableSpec pairs_table() { return {"pairs", 8, 8}; }

/// Point lookups in one table of 8-byte keys and 8-byte values (van Renen et al. 2018, section 5.5).
template <memory::Memory M>
class Uniform8 final : public Transactions<M> {
 public:
  explicit Uniform8(const Uniform8Options& options)
      : options_(options), zipf_(options.rows, options.zipf), scatter_(options.rows, options.seed) {}

  void load(M& memory, engines::Engine<M>& engine, double fill, Poll poll) override {
    table_ = load_table(memory, engine, pairs_table(), options_.rows, fill, options_.loading, options_.seed,
                        poll, [](std::uint64_t key, std::span<std::byte> payload) {
                          const std::uint64_t value = value_of(key);
                          std::memcpy(payload.data(), &value, sizeof value);
                        });
  }

  Outcome transaction(M& memory, engines::Engine<M>& engine, Random& random) override {
    const std::uint64_t key = scatter_(zipf_(random));
    std::array<std::byte, 8> bytes{};
    engine.begin(memory);
    ensure(engine.read(memory, table_, key, 0, bytes), "an engine has lost a pair");
    engine.commit(memory);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    ensure(value == value_of(key), "an engine has returned another pair's value");
    return {8, true};
  }

  std::string check(M& memory, engines::Engine<M>& engine) override {
    std::uint64_t expected = 0;
    engine.begin(memory);
    engine.scan(memory, table_, 0, options_.rows + 1, 0, 8, engines::ScanMode::kFullPages,
                [&](std::uint64_t key, std::span<const std::byte>) { return key == expected++; });
    engine.commit(memory);
    return expected == options_.rows ? ""
                                     : "a scan finds " + std::to_string(expected) + " of " +
                                           std::to_string(options_.rows) + " pairs in sequence";
  }

  [[nodiscard]] std::vector<engines::TableId> tables() const override { return {table_}; }
  [[nodiscard]] std::uint64_t rows() const override { return options_.rows; }

 private:
  [[nodiscard]] static std::uint64_t value_of(std::uint64_t key) noexcept { return mix64(key); }

  Uniform8Options options_;
  Zipf zipf_;
  Scatter scatter_;
  engines::TableId table_ = 0;
};

}  // namespace pmsim::workloads::oltp
