#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/system/part.hpp"
#include "pmsim/system/session.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

using system::Completion;
using system::Session;

/// A session as Python drives it: one call per event, none per micro-operation.
class PySession {
 public:
  PySession(std::unique_ptr<system::Service> service, const machine::PlatformParams& platform,
            std::uint32_t workers, std::uint64_t seed)
      : session_(std::move(service), platform, workers, seed) {}

  void submit(std::uint32_t worker, std::uint64_t id, std::uint32_t kind, std::uint64_t first,
              std::uint64_t count, Picoseconds at) {
    session_.submit(worker, {id, kind, first, count}, at);
  }

  /// A number: nothing is due up to `before`, and that is when there is something to do next. Else what is due,
  /// its time and that number.
  py::object advance(Picoseconds before) {
    const Picoseconds at = session_.advance(before);
    if (at == kNever)
      return py::int_(session_.next());
    session_.take_due(due_);
    py::list completions(due_.size());
    for (std::size_t index = 0; index < due_.size(); ++index) {
      const Completion& done = due_[index];
      completions[index] = py::make_tuple(done.request, done.worker, done.begin, done.result);
    }
    return py::make_tuple(at, std::move(completions), session_.next());
  }

  [[nodiscard]] Picoseconds next() const { return session_.next(); }

  [[nodiscard]] std::vector<std::string> kinds() {
    const std::vector<std::string_view> names = session_.service().kinds();
    return {names.begin(), names.end()};
  }

  [[nodiscard]] py::dict counters(Picoseconds at) {
    py::dict counters;
    session_.counters(at).for_each(
        [&](std::string_view name, std::int64_t value) { counters[py::str(name)] = value; });
    return counters;
  }

  std::uint32_t crash(Picoseconds at, Picoseconds restart_at, std::uint64_t id, std::uint64_t seed) {
    return session_.crash(at, restart_at, id, seed);
  }

  [[nodiscard]] std::vector<std::uint64_t> present() { return session_.service().present(); }
  [[nodiscard]] std::map<std::string, double> facts() { return session_.service().facts(); }
  [[nodiscard]] std::int64_t micro_ops() const { return session_.micro_ops(); }
  [[nodiscard]] std::uint32_t workers() const { return session_.workers(); }

 private:
  Session session_;
  std::vector<Completion> due_;
};

using Parts = std::vector<std::pair<std::string, WorkloadValues>>;

std::unique_ptr<PySession> make_session(const Parts& parts, const PlatformValues& values, std::uint32_t workers,
                                        std::uint64_t seed, bool crash) {
  const machine::PlatformParams platform = to_platform(values);
  std::vector<system::PartSpec> specs;
  for (const auto& [part, parameters] : parts)
    specs.push_back({part, parameters});
  return std::make_unique<PySession>(system::make_service(specs, platform, workers, seed, crash), platform,
                                     workers, seed);
}

std::unique_ptr<PySession> make_workload_session(const std::string& workload, const WorkloadValues& parameters,
                                                 const PlatformValues& values, std::uint32_t workers,
                                                 std::uint64_t seed) {
  const machine::PlatformParams platform = to_platform(values);
  return std::make_unique<PySession>(system::make_workload_service(workload, parameters, platform, seed),
                                     platform, workers, seed);
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
           py::arg("seed"), py::arg("crash") = false,
           "A server of parts (name, parameters). Raises ConfigError.")
      .def_static("of_workload", &make_workload_session, py::arg("workload"), py::arg("parameters"),
                  py::arg("platform"), py::kw_only(), py::arg("workers"), py::arg("seed"),
                  "A server whose request 'operation' is the next one of a native closed-loop workload.")
      .def("submit", &PySession::submit, py::arg("worker"), py::arg("id"), py::arg("kind"), py::arg("first"),
           py::arg("count"), py::arg("at"), "Gives a free worker a request.")
      .def("advance", &PySession::advance, py::arg("before"),
           "Acts strictly before a time, up to the first completion. Returns when there is something to do "
           "next, or, "
           "where something is due, (time, [(id, worker, begin, result), ...], that).")
      .def("crash", &PySession::crash, py::arg("at"), py::arg("restart_at"), py::arg("id"), py::arg("seed"),
           "Power failure; the recovery is a request of worker 0. Returns how many requests were lost.")
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
