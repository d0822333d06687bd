#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "pmsim/blocks/page/driver.hpp"
#include "pmsim/workloads/options/memory.hpp"

namespace pmsim::workloads {

/// One of the first `count` techniques.
[[nodiscard]] inline blocks::page::Technique read_technique(
    Parameters& parameters, std::size_t count = blocks::page::kTechniqueNames.size()) {
  const auto& names = blocks::page::kTechniqueNames;
  const std::string technique =
      parameters.choice("technique", {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count)});
  return static_cast<blocks::page::Technique>(std::ranges::find(names, technique) - names.begin());
}

/// All but the seed, the costs by which "hybrid" chooses, and how the store is laid out and visited.
[[nodiscard]] inline blocks::page::DriverOptions read_page_flush(Parameters& parameters) {
  using namespace blocks::page;
  DriverOptions options;
  options.technique = read_technique(parameters);
  options.store.page_bytes = static_cast<std::uint32_t>(parameters.number("page_size", 64, 65536));
  options.store.pages = static_cast<std::uint64_t>(parameters.number("pages", 1, std::int64_t{1} << 24));
  options.store.writers = read_threads(parameters);
  options.store.write =
      parameters.choice("write", {"ntstore", "store+clwb"}) == "ntstore" ? Write::kStream : Write::kStoreFlush;
  options.dirty_lines = static_cast<std::uint32_t>(parameters.number("dirty_lines", 1, 1024));
  return options;
}

}  // namespace pmsim::workloads
