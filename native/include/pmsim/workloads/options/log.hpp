#pragma once

#include "pmsim/blocks/log/driver.hpp"
#include "pmsim/workloads/options/memory.hpp"

namespace pmsim::workloads {

/// All but the seed and the calibrated cost of an append.
[[nodiscard]] inline blocks::log::DriverOptions read_log(Parameters& parameters) {
  blocks::log::DriverOptions options;
  options.algorithm =
      parameters.choice("algorithm", {blocks::log::kAlgorithms.begin(), blocks::log::kAlgorithms.end()});
  options.layout = blocks::log::layout_named(
      parameters.choice("layout", {blocks::log::kLayouts.begin(), blocks::log::kLayouts.end()}));
  options.entry_size = static_cast<std::uint64_t>(parameters.number("entry_size", 8, 1 << 28));
  options.group_commit = static_cast<std::uint32_t>(parameters.number("group_commit", 1, 1 << 20));
  options.dancing_fields = static_cast<std::uint32_t>(parameters.number("dancing_fields", 1, 4096));
  options.log_size = static_cast<std::uint64_t>(parameters.number("log_size", 256, kLargestRegion));
  options.threads = read_threads(parameters);
  options.medium = read_medium(parameters);
  return options;
}

}  // namespace pmsim::workloads
