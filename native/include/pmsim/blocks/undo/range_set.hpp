#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "pmsim/blocks/undo/types.hpp"

namespace pmsim::blocks::undo {

struct Range {
  Address begin = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Range&) const = default;
};

/// The ranges of a transaction, disjoint and in order; neighbours that touch are one. PMDK keeps them in a tree
/// in DRAM (pmemobj_tx_add_common), which is part of Options::library_cycles.
class RangeSet {
 public:
  /// What of [begin, begin + bytes) no range covers yet, in ascending order.
  [[nodiscard]] std::vector<Range> gaps(Address begin, std::uint64_t bytes) const {
    std::vector<Range> gaps;
    const Address end = begin + bytes;
    auto range = ends_.upper_bound(begin);
    if (range != ends_.begin())
      begin = std::max(begin, std::prev(range)->second);
    for (; begin < end; ++range) {
      const Address next = range == ends_.end() ? end : std::min(end, range->first);
      if (begin < next)
        gaps.push_back({begin, next - begin});
      if (range == ends_.end())
        break;
      begin = range->second;
    }
    return gaps;
  }

  void add(Address begin, std::uint64_t bytes) {
    Address end = begin + bytes;
    auto range = ends_.upper_bound(begin);
    if (range != ends_.begin() && std::prev(range)->second >= begin)
      --range;
    while (range != ends_.end() && range->first <= end) {
      begin = std::min(begin, range->first);
      end = std::max(end, range->second);
      range = ends_.erase(range);
    }
    ends_.emplace(begin, end);
  }

  /// Calls visit(begin, bytes) in ascending order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [begin, end] : ends_)
      visit(begin, end - begin);
  }

  void clear() noexcept { ends_.clear(); }

 private:
  std::map<Address, Address> ends_;
};

}  // namespace pmsim::blocks::undo
