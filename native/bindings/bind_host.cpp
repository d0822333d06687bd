#include <pybind11/stl.h>

#include <optional>
#include <utility>

#include "bindings.hpp"
#include "pmsim/core/host_room.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/memory/host_cpu.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

py::dict measure(const std::string& name, const WorkloadValues& parameters, const std::string& path,
                 bool large_pages, std::uint32_t repetitions, double seconds) {
  host::Measured measured;
  std::uint32_t threads = 0;
  std::uint64_t bytes = 0;
  bool dax = false;
  {
    const py::gil_scoped_release released;
    const std::unique_ptr<host::Benchmark> benchmark = host::make_benchmark(
        name, workloads::Parameters(name, parameters), host::Place{.path = path, .large_pages = large_pages});
    measured =
        host::measure(*benchmark, {.repetitions = repetitions, .seconds = seconds, .poll = check_signals});
    threads = benchmark->threads();
    bytes = benchmark->bytes_per_operation();
    dax = benchmark->is_dax();
  }
  py::list times;
  py::list rates;
  py::list shares;
  for (const host::Sample& sample : measured.samples) {
    times.append(sample.ns_per_operation);
    rates.append(sample.operations_per_s);
    shares.append(sample.cpu_share);
  }
  py::dict row;
  row["ns_per_operation"] = times;
  row["operations_per_s"] = rates;
  row["cpu_share"] = shares;
  row["threads"] = threads;
  row["bytes_per_operation"] = bytes;
  row["pinned"] = measured.pinned;
  row["is_dax"] = dax;
  return row;
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const host::BenchmarkKind& kind : host::benchmark_kinds()) {
    found.emplace_back(kind.name);
  }
  return found;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> room() {
  const std::optional<HostRoom> found = host_room();
  if (!found)
    return std::nullopt;
  return std::pair(found->total, found->available);
}

py::dict features() {
  const memory::CpuFeatures& found = memory::cpu_features();
  py::dict row;
  row["clflush"] = found.clflush;
  row["clflushopt"] = found.clflushopt;
  row["clwb"] = found.clwb;
  row["sse2"] = found.sse2;
  row["avx"] = found.avx;
  row["avx512f"] = found.avx512f;
  return row;
}

}  // namespace

void bind_host(py::module_& module) {
  module.def("host_benchmarks", &names, "Names of the benchmarks of this machine.");
  module.def("host_features", &features, "Which instructions of HostMemory this CPU has.");
  module.def("host_room", &room,
             "Memory of this machine that processes may use, and what of it is available [B]; None where it is "
             "not known. Raises ConfigError.");
  module.def("host_processors", &host::usable_processors,
             "Numbers of the processors that this process may use.");
  module.def(
      "host_measure", &measure, py::arg("benchmark"), py::arg("parameters"), py::kw_only(),
      py::arg("path") = "", py::arg("large_pages") = true, py::arg("repetitions") = 15,
      py::arg("seconds") = 0.01,
      "Times a benchmark on this machine, with the file `path` behind its pmem window. A dictionary of lists, "
      "one "
      "value per repetition (ns_per_operation, operations_per_s, cpu_share), and threads, bytes_per_operation, "
      "pinned, is_dax. Raises ConfigError.");
}

}  // namespace pmsim::bindings
