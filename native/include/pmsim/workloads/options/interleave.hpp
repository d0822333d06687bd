#pragma once

#include <string>

#include "pmsim/blocks/index/driver.hpp"
#include "pmsim/workloads/options/memory.hpp"

namespace pmsim::workloads {

/// All but the seed, the calibrated cost of a switch, the order of an insert's flushes and when leaves are
/// filled.
template <memory::Memory M>
[[nodiscard]] typename blocks::index::InterleaveDriver<M>::Options read_interleave(Parameters& parameters) {
  using blocks::index::Fence;
  using blocks::index::FpTreeLeaf;
  typename blocks::index::InterleaveDriver<M>::Options options;
  options.inserts = parameters.choice("operation", {"lookup", "insert"}) == "insert";
  const std::string interleave = parameters.choice("interleave", {"none", "reads", "writes", "both"});
  options.interleaved = interleave != "none";
  options.how.reads = interleave == "reads" || interleave == "both";
  options.how.writes = interleave == "writes" || interleave == "both";
  if (!options.inserts && options.how.writes)
    parameters.refuse("interleave", "a lookup writes nothing; use \"none\" or \"reads\"");
  options.how.fence =
      parameters.choice("fence", {"sfence", "mfence"}) == "mfence" ? Fence::kMfence : Fence::kSfence;
  options.group_size = static_cast<std::uint32_t>(
      parameters.number("group_size", 1, static_cast<std::int64_t>(blocks::index::kMaxGroup)));
  options.medium = read_medium(parameters);
  options.threads = read_threads(parameters);
  options.region_bytes = static_cast<std::uint64_t>(
      parameters.number("region_size", static_cast<std::int64_t>(FpTreeLeaf::kBytes), kLargestRegion));
  const std::uint64_t leaves = options.inserts && options.interleaved ? options.group_size : 1;
  if (options.region_bytes / options.threads < leaves * FpTreeLeaf::kBytes)
    parameters.refuse("region_size",
                      "too small: each thread needs a leaf of 576 bytes, with interleaved inserts "
                      "one for each of a group");
  return options;
}

}  // namespace pmsim::workloads
