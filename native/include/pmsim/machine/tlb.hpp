#pragma once

#include <bit>
#include <cstdint>

#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

/// The numbers of virtual pages. Where DRAM and PMem are in pages of different sizes, those of DRAM carry a
/// mark, so that the two never meet, neither in a TLB nor in the page table.
struct PageNumbers {
  explicit PageNumbers(const TlbParams& params)
      : shift(std::countr_zero(static_cast<std::uint64_t>(params.page_size))),
        dram_shift(std::countr_zero(static_cast<std::uint64_t>(params.dram_page_size))),
        dram_mark(shift == dram_shift ? 0 : std::uint64_t{1} << 39) {}  // the page table stays in its window

  [[nodiscard]] std::uint64_t of(std::uint64_t address) const noexcept {
    const bool dram = memory::medium_of(address) == memory::Medium::kDram;
    return dram ? address >> dram_shift | dram_mark : address >> shift;
  }

  int shift;
  int dram_shift;
  std::uint64_t dram_mark;
};

/// Two TLB levels of one core, time-free. Associativities as in Skylake: 4 and 12 ways; the set of the first
/// level is in the low bits of a page's number, that of the second a hash of it (Gras et al., Translation
/// Leak-aside Buffer, USENIX Security 2018, Table 1). Where DRAM and PMem are in pages of different sizes each
/// has a first level of its own, as processors have one for each size, and both share the second. Beside them
/// the paging-structure cache, which spares a walk the level above the last.
class Tlb {
 public:
  explicit Tlb(const TlbParams& params)
      : pages_(params),
        first_dram_(params.first_level_entries, params.first_level_entries < 4 ? 1 : 4, 1),
        first_(params.first_level_entries, params.first_level_entries < 4 ? 1 : 4, 1),
        second_(params.second_level_entries, params.second_level_entries < 12 ? 1 : 12, 1,
                params.second_level_entries),
        page_tables_(params.paging_structure_entries, params.paging_structure_entries < 4 ? 1 : 4, 1,
                     params.paging_structure_entries) {}

  enum class Found : std::uint8_t { kFirst, kSecond, kNowhere };

  [[nodiscard]] std::uint64_t page_of(std::uint64_t address) const noexcept { return pages_.of(address); }

  /// The page that was translated last: in the first level, most recently used.
  [[nodiscard]] bool is_last(std::uint64_t page) const noexcept { return page == last_page_; }
  Found translate(std::uint64_t page) noexcept {
    last_page_ = page;
    return find(HashedLine(page));
  }

  /// Asks the host for what the translation of a page will look at, unless that is in the first level.
  [[nodiscard]] bool prefetch(HashedLine page) const noexcept {
    const Cache& first = (page.line() & pages_.dram_mark) != 0 ? first_dram_ : first_;
    if (first.may_hold(first.place_of(page))) {
      return false;
    }
    second_.prefetch_fill(second_.place_of(page));
    return true;
  }

  /// A walk asks where a page table is: true if its place was at hand. It is from now on.
  bool knows_table(std::uint64_t table) noexcept {
    const HashedLine hashed(table);
    const Cache::Place place = page_tables_.place_of(hashed);
    if (page_tables_.touch(place, table) != nullptr) {
      return true;
    }
    page_tables_.insert(place, table);
    return false;
  }

 private:
  Found find(HashedLine page) noexcept {
    Cache& first = first_of(page.line());
    const Cache::Place in_first = first.place_of(page);
    if (first.touch(in_first, page.line()) != nullptr) {
      return Found::kFirst;
    }
    first.insert(in_first, page.line());
    const Cache::Place in_second = second_.place_of(page);
    if (second_.touch(in_second, page.line()) != nullptr) {
      return Found::kSecond;
    }
    second_.insert(in_second, page.line());
    return Found::kNowhere;
  }

  [[nodiscard]] Cache& first_of(std::uint64_t page) noexcept {
    return (page & pages_.dram_mark) != 0 ? first_dram_ : first_;
  }

  PageNumbers pages_;
  Cache first_dram_;
  std::uint64_t last_page_ = ~std::uint64_t{0};
  Cache first_;
  Cache second_;
  Cache page_tables_;  ///< the paging-structure cache: tables whose place is at hand
};

}  // namespace pmsim::machine
