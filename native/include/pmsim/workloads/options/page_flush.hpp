#pragma once

#include <algorithm>
#include <string>

#include "pmsim/blocks/page/driver.hpp"
#include "pmsim/workloads/options/memory.hpp"

namespace pmsim::workloads {

/// All but the seed, the costs by which "hybrid" chooses, and how the store is laid out and visited.
[[nodiscard]] inline blocks::page::DriverOptions read_page_flush(Parameters& parameters) {
  using namespace blocks::page;
  const std::string technique =
      parameters.choice("technique", {kTechniqueNames.begin(), kTechniqueNames.end()});
  DriverOptions options;
  options.technique =
      static_cast<Technique>(std::ranges::find(kTechniqueNames, technique) - kTechniqueNames.begin());
  options.store.page_bytes = static_cast<std::uint32_t>(parameters.number("page_size", 64, 65536));
  options.store.pages = static_cast<std::uint64_t>(parameters.number("pages", 1, std::int64_t{1} << 24));
  options.store.writers = read_threads(parameters);
  options.store.write =
      parameters.choice("write", {"ntstore", "store+clwb"}) == "ntstore" ? Write::kStream : Write::kStoreFlush;
  options.dirty_lines = static_cast<std::uint32_t>(parameters.number("dirty_lines", 1, 1024));
  return options;
}

}  // namespace pmsim::workloads
