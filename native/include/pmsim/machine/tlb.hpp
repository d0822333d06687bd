#pragma once

#include <bit>
#include <cstdint>

#include "pmsim/machine/cache.hpp"
#include "pmsim/machine/params.hpp"

namespace pmsim::machine {

/// Two TLB levels of one core, time-free. Associativities as in Skylake: 4 and 12 ways.
class Tlb {
 public:
  explicit Tlb(const TlbParams& params)
      : page_shift_(std::countr_zero(static_cast<std::uint64_t>(params.page_size))),
        first_(params.first_level_entries, params.first_level_entries < 4 ? 1 : 4, 1),
        second_(params.second_level_entries, params.second_level_entries < 12 ? 1 : 12, 1) {}

  enum class Found : std::uint8_t { kFirst, kSecond, kNowhere };

  [[nodiscard]] std::uint64_t page_of(std::uint64_t address) const noexcept { return address >> page_shift_; }

  Found translate(std::uint64_t page) noexcept {
    if (page == last_page_) [[likely]] {
      return Found::kFirst;
    }
    last_page_ = page;
    return find(HashedLine(page));
  }

 private:
  Found find(HashedLine page) noexcept {
    const Cache::Place in_first = first_.place_of(page);
    if (first_.touch(in_first, page.line()) != nullptr) {
      return Found::kFirst;
    }
    first_.insert(in_first, page.line());
    const Cache::Place in_second = second_.place_of(page);
    if (second_.touch(in_second, page.line()) != nullptr) {
      return Found::kSecond;
    }
    second_.insert(in_second, page.line());
    return Found::kNowhere;
  }

  int page_shift_;
  std::uint64_t last_page_ = ~std::uint64_t{0};
  Cache first_;
  Cache second_;
};

}  // namespace pmsim::machine
