#pragma once

#include <algorithm>

#include "pmsim/engines/fptree/engine.hpp"

namespace pmsim::engines::fptree {

template <memory::Memory M, std::uint32_t kInnerNodeBytes>
std::string FpTreeEngine<M, kInnerNodeBytes>::check(M& memory) {
  ensure(!in_transaction_ && log_.empty(), "check() inside of a transaction");
  std::vector<PageId> owned;
  std::uint64_t leaves = 0;
  for (std::uint32_t number = 0; number < tables_.size(); ++number) {
    const auto fail = [&](const std::string& what) { return "table '" + tables_[number].name + "': " + what; };
    btree::TreeCheck<Store, std::uint64_t, M> inner_check(*tables_[number].inner, owned);
    if (const std::string problem = inner_check.run(memory, store_); !problem.empty())
      return fail("inner nodes: " + problem);
    std::vector<Child> children;
    tables_[number].inner->scan(memory, store_, 0, ~std::uint64_t{0}, 0, 8, ScanMode::kFullPages,
                                [&](std::uint64_t low, std::span<const std::byte> payload) {
                                  children.push_back({low, 0});
                                  std::memcpy(&children.back().leaf, payload.data(), sizeof(Address));
                                  return true;
                                });
    Address leaf = memory.template load<std::uint64_t>(Meta::row(place_.meta, number));
    for (std::size_t at = 0; at < children.size(); ++at, leaf = next_of(memory, leaf)) {
      if (leaf != children[at].leaf)
        return fail("the links and the inner nodes disagree about leaf " + std::to_string(at));
      const auto contents = Leaf::recover(memory, leaf);
      if (contents.count == 0 && children.size() > 1)
        return fail("leaf " + std::to_string(at) + " is empty");
      if (contents.wrong_fingerprints > 0)
        return fail("leaf " + std::to_string(at) + " has a wrong fingerprint");
      std::vector<std::uint64_t> keys;
      for (std::uint32_t entry = 0; entry < contents.count; ++entry)
        keys.push_back(contents.entries[entry].key);
      std::sort(keys.begin(), keys.end());
      if (std::adjacent_find(keys.begin(), keys.end()) != keys.end())
        return fail("leaf " + std::to_string(at) + " has a key twice");
      if (!keys.empty() && (keys.front() < children[at].low ||
                            (at + 1 < children.size() && keys.back() >= children[at + 1].low)))
        return fail("leaf " + std::to_string(at) + " has a key that belongs to another one");
    }
    if (leaf != 0)
      return fail("the last leaf names a next one");
    leaves += children.size();
  }
  if (leaves != space_.used())
    return std::to_string(space_.used()) + " leaves are in use, " + std::to_string(leaves) + " have an owner";
  std::sort(owned.begin(), owned.end());
  return store_.check(memory, owned);
}

}  // namespace pmsim::engines::fptree
