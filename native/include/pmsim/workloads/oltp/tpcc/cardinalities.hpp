#pragma once

#include <cstdint>

#include "pmsim/workloads/oltp/tpcc/random.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// How much there is. Everything but `warehouses` is what the specification says (clause 1.2.1), unless a test
/// wants less.
struct Cardinalities {
  std::uint32_t warehouses = 1;
  std::uint32_t items = 100'000;
  std::uint32_t customers = 3'000;  ///< of a district; as many orders, of which the last 30 % are new
  [[nodiscard]] constexpr std::uint32_t first_new_order() const noexcept { return customers * 7 / 10 + 1; }
  [[nodiscard]] constexpr std::uint32_t names() const noexcept {
    return customers < kNames ? customers : kNames;
  }
};

}  // namespace pmsim::workloads::oltp::tpcc
