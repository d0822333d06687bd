#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/system/part.hpp"
#include "py_session.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

using Parts = std::vector<std::pair<std::string, WorkloadValues>>;

std::unique_ptr<PySession> make_session(const Parts& parts, const PlatformValues& values, std::uint32_t workers,
                                        std::uint64_t seed, bool crash, const py::object& watch) {
  const machine::PlatformParams platform = to_platform(values);
  std::vector<system::PartSpec> specs;
  for (const auto& [part, parameters] : parts)
    specs.push_back({part, parameters});
  PyWatch waiting(watch);
  return std::make_unique<PySession>(
      system::make_service(specs, platform, workers, seed, crash, waiting.watch()), platform, workers, seed);
}

std::unique_ptr<PySession> make_workload_session(const std::string& workload, const WorkloadValues& parameters,
                                                 const PlatformValues& values, std::uint32_t workers,
                                                 std::uint64_t seed, const py::object& watch) {
  const machine::PlatformParams platform = to_platform(values);
  PyWatch waiting(watch);
  return std::make_unique<PySession>(
      system::make_workload_service(workload, parameters, platform, seed, waiting.watch()), platform, workers,
      seed);
}

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const system::PartKind& kind : system::part_kinds())
    names.emplace_back(kind.name);
  return names;
}

}  // namespace

void bind_system(py::module_& module) {
  module.def("parts", &part_names, "Names of the parts that a server can be made of.");
  py::class_<PySession>(module, "Session",
                        "A service on a simulated machine whose workers sleep until they are given a request. "
                        "Times are picoseconds; use pmsim.des, which drives it from SimPy.")
      .def(py::init(&make_session), py::arg("parts"), py::arg("platform"), py::kw_only(), py::arg("workers"),
           py::arg("seed"), py::arg("crash") = false, py::arg("watch") = py::none(),
           "A server of parts (name, parameters). `watch`: as of simulate(). Raises ConfigError.")
      .def("acknowledge_in_order", &PySession::acknowledge_in_order,
           "Requests of a shared service are acknowledged in order, as where the power can fail.")
      .def_static("of_workload", &make_workload_session, py::arg("workload"), py::arg("parameters"),
                  py::arg("platform"), py::kw_only(), py::arg("workers"), py::arg("seed"),
                  py::arg("watch") = py::none(),
                  "A server whose request 'operation' is the next one of a native closed-loop workload.")
      .def("submit", &PySession::submit, py::arg("worker"), py::arg("id"), py::arg("kind"), py::arg("first"),
           py::arg("count"), py::arg("at"), "Gives a free worker a request.")
      .def("advance", &PySession::advance, py::arg("before"),
           "Acts strictly before a time, up to the first completion. Returns when there is something to do "
           "next, or, "
           "where something is due, (time, [(id, worker, begin, result), ...], that).")
      .def(
          "crash", &PySession::crash, py::arg("at"), py::arg("restart_at"), py::arg("id"), py::arg("seed"),
          py::arg("lost") = "",
          "Power failure; the recovery is a request of worker 0. A lost device (pmem, block) comes back empty. "
          "Returns how many requests were cut off.")
      .def("stall", &PySession::stall, py::arg("device"), py::arg("at"), py::arg("duration"),
           "The device (pmem, block) pauses.")
      .def("slow", &PySession::slow, py::arg("device"), py::arg("at"), py::arg("percent"),
           "The device takes so many hundredths of its times from now on.")
      .def("present", &PySession::present, "What the service's ledger finds; see the part.")
      .def("counters", &PySession::counters, py::arg("at"), "Counters of the machine up to a time.")
      .def("facts", &PySession::facts, "Numbers about the service's data structures.")
      .def_property_readonly("kinds", &PySession::kinds, "Names of its request kinds, by number.")
      .def_property_readonly("next", &PySession::next,
                             "When it next has something to do or to report; 2**63 - 1: never.")
      .def_property_readonly("workers", &PySession::workers, "Worker threads.")
      .def_property_readonly("micro_ops", &PySession::micro_ops, "Micro-operations executed so far.");
}

}  // namespace pmsim::bindings
