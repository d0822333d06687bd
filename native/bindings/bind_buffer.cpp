#include <pybind11/stl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/buffer/buffer_manager.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

using engines::Access;
using engines::buffer::BufferConfig;
using engines::buffer::BufferManager;
using engines::buffer::FullFrame;
using memory::SimMemory;

/// One byte per request: 1 where the page was in DRAM.
py::bytes clock_hits(const std::vector<std::uint64_t>& pages, std::uint64_t frames) {
  const std::uint64_t count = pages.empty() ? 1 : *std::ranges::max_element(pages) + 1;
  if (count > std::uint64_t{1} << 20)
    throw ConfigError("clock_hits: pages are numbered from 0 to 2^20 - 1");
  engines::EngineOptions options;
  options.engine = "ssd-bm";
  options.page_bytes = 4096;
  options.dram_bytes = frames * FullFrame{options.page_bytes}.bytes();
  options.ssd_bytes = count * options.page_bytes;
  SimMemory memory;
  BufferManager<SimMemory> manager(memory, BufferConfig::from(options));
  const std::vector<std::byte> image(options.page_bytes);
  for (std::uint64_t page = 0; page < count; ++page)
    manager.load(memory, image);
  manager.sync(memory);
  std::string hits;
  hits.reserve(pages.size());
  for (const std::uint64_t id : pages) {
    const std::uint64_t before = manager.counts().dram_hits;
    auto page = manager.fix_page(memory, id, Access::kFull);
    manager.unfix(memory, page);
    hits.push_back(manager.counts().dram_hits != before ? '\1' : '\0');
  }
  return {hits};
}

}  // namespace

void bind_buffer(py::module_& module) {
  module.def(
      "clock_hits", &clock_hits, py::arg("pages"), py::arg("frames"),
      "Which requests of a page trace find their page among `frames` pages in DRAM (engine ssd-bm, clock).\n\n"
      "For comparison with other implementations of clock.");
}

}  // namespace pmsim::bindings
