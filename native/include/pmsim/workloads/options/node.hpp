#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "pmsim/blocks/node/driver.hpp"
#include "pmsim/workloads/options/memory.hpp"

namespace pmsim::workloads {

/// Number of a name in a list of words.
template <typename Enum>
[[nodiscard]] Enum read_choice(Parameters& parameters, std::string_view name,
                               const std::vector<std::string_view>& words) {
  const std::string word = parameters.choice(name, words);
  return static_cast<Enum>(std::ranges::find(words, word) - words.begin());
}

/// All but the seed.
[[nodiscard]] inline blocks::node::NodeOptions read_node(Parameters& parameters) {
  using namespace blocks::node;
  NodeOptions options;
  options.operation = read_choice<Operation>(
      parameters, "operation",
      {"search", "iterate", "insert", "split", "erase", "balance", "merge", "allocate", "deallocate"});
  const auto layout = read_choice<Layout>(parameters, "layout", {kLayoutNames.begin(), kLayoutNames.end()});
  const auto bytes = static_cast<std::uint32_t>(parameters.number("node_size", 1, kMostNodeBytes));
  const auto header = read_choice<Header>(parameters, "header", {"padded", "packed"});
  const auto entries = static_cast<std::uint32_t>(parameters.number("entries", 0, kMostNodeBytes / kPairBytes));
  const auto places = geometry(layout, bytes, header, entries);
  if (!places)
    parameters.refuse(entries == 0 ? "node_size" : "entries",
                      "such a node has no room for two pairs, or for so many; choose a larger node, at most 8 "
                      "KiB, or fewer entries");
  options.geometry = *places;
  options.position = read_choice<Position>(parameters, "position", {"first", "middle", "last", "random"});
  options.shuffled = parameters.choice("order", {"ascending", "random"}) == "random";
  options.persist = read_choice<Persist>(parameters, "persist", {"once", "ordered", "transaction"});
  const bool inserts = options.operation == Operation::kInsert;
  if (options.persist == Persist::kOrdered &&
      !((inserts || options.operation == Operation::kErase) && can_be_ordered(layout, inserts)))
    parameters.refuse(
        "persist",
        "no order of stores makes this operation failure-atomic in this layout; choose once or transaction");
  options.split = read_choice<Split>(parameters, "split", {"move", "copy"});
  if (options.split == Split::kCopy && !has_bitmap(layout))
    parameters.refuse("split", "only layouts with a bitmap can be copied and divided by bits; choose move");
  options.allocates = parameters.choice("allocation", {"transaction", "none"}) == "transaction";
  options.to_larger = parameters.choice("direction", {"smaller", "larger"}) == "larger";
  options.iterate_by = read_choice<IterateBy>(parameters, "iterate_by", {"count", "bitmap", "slots"});
  if (options.operation == Operation::kIterate && !can_iterate(layout, options.iterate_by))
    parameters.refuse("iterate_by",
                      "nodes of this layout have none; choose count (sorted, unsorted), bitmap (others) or "
                      "slots (indirection)");
  options.chain = static_cast<std::uint32_t>(parameters.number("chain", 1, 1'000'000));
  options.medium = read_medium(parameters);
  options.region_bytes = static_cast<std::uint64_t>(parameters.number("region_size", 1, kLargestRegion));
  options.library_cycles = static_cast<std::uint32_t>(parameters.number("library_cycles", 0, 1'000'000));
  return options;
}

}  // namespace pmsim::workloads
