#pragma once

#include <string>

#include "pmsim/blocks/inplace/driver.hpp"
#include "pmsim/workloads/options/memory.hpp"

namespace pmsim::workloads {

/// All but the seed, the length of the log and how records get their state.
[[nodiscard]] inline blocks::inplace::InPlaceOptions read_in_place(Parameters& parameters) {
  using namespace blocks::inplace;
  const std::string algorithm = parameters.choice("algorithm", {"word", "cow", "log", "fam", "fam-scalar"});
  const std::string operation = parameters.choice("operation", {"write", "read", "dependent-read"});
  InPlaceOptions options;
  options.algorithm = algorithm == "word"  ? Algorithm::kWord
                      : algorithm == "cow" ? Algorithm::kCow
                      : algorithm == "log" ? Algorithm::kLog
                                           : Algorithm::kFam;
  options.path = algorithm == "fam-scalar" ? FamPath::kScalar : FamPath::kAvx2;
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
