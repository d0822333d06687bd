#pragma once

#include <cstdint>

#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

/// Where page-table entries lie: the last level, and the one above, whose entries say where tables of the last
/// level are. What is above these two is small enough to be at hand.

/// At the upper end of the DRAM window, out of reach of any region: dram.capacity ends at half of it.
inline constexpr std::uint64_t kPageTables =
    memory::medium_base(memory::Medium::kDram) + memory::kMediumBytes / 2;
inline constexpr std::uint64_t kUpperTables = kPageTables + memory::kMediumBytes * 3 / 8;
inline constexpr std::uint64_t kEntryBytes = 8;
inline constexpr std::uint64_t kEntriesPerTable = 512;

/// The line of a page's entry.
[[nodiscard]] constexpr std::uint64_t page_table_line(std::uint64_t page) noexcept {
  return (kPageTables + page * kEntryBytes) / memory::kLineBytes;
}

/// The table that has a page's entry.
[[nodiscard]] constexpr std::uint64_t page_table_of(std::uint64_t page) noexcept {
  return page / kEntriesPerTable;
}

/// The line of the entry that says where this table is.
[[nodiscard]] constexpr std::uint64_t upper_table_line(std::uint64_t page) noexcept {
  return (kUpperTables + page_table_of(page) * kEntryBytes) / memory::kLineBytes;
}

}  // namespace pmsim::machine
