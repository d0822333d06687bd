#pragma once

#include <string>

#include "pmsim/blocks/inplace/driver.hpp"
#include "pmsim/workloads/options/memory.hpp"

namespace pmsim::workloads {

/// All but the seed, the length of the log and how records get their state.
[[nodiscard]] inline blocks::inplace::InPlaceOptions read_in_place(Parameters& parameters) {
  using namespace blocks::inplace;
  const std::string operation = parameters.choice("operation", {"write", "read", "dependent-read"});
  InPlaceOptions options;
  options.algorithm = parameters.choice("algorithm", {kMethods.begin(), kMethods.end()});
  options.operation = operation == "write"  ? Operation::kWrite
                      : operation == "read" ? Operation::kRead
                                            : Operation::kDependentRead;
  options.random = parameters.choice("pattern", {"sequential", "random"}) == "random";
  options.medium = read_medium(parameters);
  options.bytes = static_cast<std::size_t>(parameters.number("update_size", kLeastBytes, kMostBytes));
  options.array_bytes =
      static_cast<std::uint64_t>(parameters.number("region_size", memory::kLineBytes, kLargestRegion));
  options.threads = read_threads(parameters);
  return options;
}

}  // namespace pmsim::workloads
