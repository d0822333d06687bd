#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pmsim::workloads::oltp {

/// Bytes of a page before its keys: the store's header and the tree's (docs/engines).
inline constexpr std::uint32_t kPageOverheadBytes = 64;

/// Rows that a leaf of `page_bytes` holds when a table is loaded with this fill factor.
[[nodiscard]] inline std::uint64_t rows_per_leaf(std::uint32_t page_bytes, std::uint32_t row_bytes,
                                                 double fill) {
  const std::uint64_t capacity = (page_bytes - kPageOverheadBytes) / row_bytes;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(capacity) * fill));
}

/// Rows of one table whose B+-tree, inner nodes included, takes at most `data_bytes` after loading: the "data
/// size" of the paper (section 5.1). At least one.
[[nodiscard]] inline std::uint64_t rows_of_size(std::uint64_t data_bytes, std::uint32_t page_bytes,
                                                std::uint32_t key_bytes, std::uint32_t payload_bytes,
                                                double fill) {
  const std::uint64_t per_leaf = rows_per_leaf(page_bytes, key_bytes + payload_bytes, fill);
  const std::uint64_t per_inner = rows_per_leaf(page_bytes, key_bytes + 8, fill);
  std::uint64_t pages = data_bytes / page_bytes;
  // The catalog, and one partly filled node per level.
  pages -= std::min<std::uint64_t>(pages, 5);
  const auto leaves = static_cast<std::uint64_t>(
      static_cast<double>(pages) * (1 - 1 / static_cast<double>(std::max<std::uint64_t>(2, per_inner))));
  return std::max<std::uint64_t>(1, leaves * per_leaf);
}

}  // namespace pmsim::workloads::oltp
