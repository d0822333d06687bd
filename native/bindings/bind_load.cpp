#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "latency_table.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/system/driver.hpp"
#include "py_session.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

using system::Arrivals;
using system::Driver;
using system::Mix;
using system::Recorder;

/// (weight, kind, how `first` is chosen, value, count, mean, exponent of Zipf's law)
using EntryValues =
    std::tuple<std::uint64_t, std::uint32_t, std::string, std::uint64_t, std::uint64_t, double, double>;

Mix::First first_named(const std::string& name) {
  if (name == "fixed")
    return Mix::First::kFixed;
  if (name == "sequence")
    return Mix::First::kSequence;
  if (name == "uniform")
    return Mix::First::kUniform;
  if (name == "zipf")
    return Mix::First::kZipf;
  throw ConfigError("mix: first = \"" + name + "\" is unknown; choose fixed, sequence, uniform or zipf");
}

std::unique_ptr<Mix> make_mix(const std::vector<EntryValues>& values, std::uint64_t seed) {
  std::vector<Mix::Entry> entries;
  for (const auto& [weight, kind, first, value, count, mean, zipf] : values)
    entries.push_back({weight, kind, first_named(first), value, count, mean, zipf});
  return std::make_unique<Mix>(std::move(entries), seed);
}

py::dict latency_of(const Recorder::Window& window) {
  const machine::Histogram& latency = window.latency;
  py::dict row;
  row["count"] = latency.count();
  row["failed"] = window.failed;
  row["mean_ps"] = latency.mean();
  row["waited_ps"] =
      latency.count() == 0 ? 0.0 : static_cast<double>(window.waited) / static_cast<double>(latency.count());
  row["p50_ps"] = latency.percentile(0.50);
  row["p95_ps"] = latency.percentile(0.95);
  row["p99_ps"] = latency.percentile(0.99);
  row["p999_ps"] = latency.percentile(0.999);
  row["max_ps"] = latency.maximum();
  return row;
}

py::dict summary(Recorder& recorder, Picoseconds at) {
  py::dict row = latency_of(recorder.total());
  row["submitted"] = recorder.count_submitted();
  row["in_system"] = recorder.in_system();
  row["mean_in_system"] = recorder.mean_in_system(at);
  row["elapsed_ps"] = at - recorder.begin();
  return row;
}

py::list windows(Recorder& recorder, Picoseconds at) {
  py::list rows;
  Picoseconds begin = recorder.begin();
  for (const Recorder::Window& window : recorder.windows(at)) {
    py::dict row = latency_of(window);
    row["begin_ps"] = begin;
    row["window_ps"] = recorder.window();
    rows.append(row);
    begin += recorder.window();
  }
  return rows;
}

/// Requests by window and bucket of their latency.
LatencyTable latencies(Recorder& recorder, Picoseconds at) {
  std::vector<machine::Histogram> windows;
  for (const Recorder::Window& window : recorder.windows(at))
    windows.push_back(window.latency);
  return latency_table(windows, recorder.total().latency.maximum());
}

/// (arrivals, mix, clients, window)
using TenantValues = std::tuple<const Arrivals*, const Mix*, std::uint32_t, Picoseconds>;

class PyDriver {
 public:
  PyDriver(PySession& session, const std::vector<TenantValues>& tenants, bool keep_log)
      : driver_(session.native(), specs_of(tenants), keep_log) {}

  void run(Picoseconds until, const py::object& watch) {
    PyWatch waiting(watch);
    const py::gil_scoped_release released;
    driver_.run(until, waiting.watch());
  }
  void finish(const py::object& watch) {
    PyWatch waiting(watch);
    const py::gil_scoped_release released;
    driver_.finish(waiting.watch());
  }
  [[nodiscard]] py::list log() const {
    py::list rows;
    for (const Driver::Served& served : driver_.log()) {
      rows.append(py::make_tuple(served.tenant, served.request, served.worker, served.submitted, served.granted,
                                 served.begin, served.end));
    }
    return rows;
  }
  [[nodiscard]] Recorder& recorder(std::size_t tenant) {
    if (tenant >= driver_.tenants())
      throw ConfigError("tenant: there are " + std::to_string(driver_.tenants()));
    return driver_.recorder(tenant);
  }
  void drain() { driver_.drain(); }
  [[nodiscard]] py::bytes save() { return driver_.save(); }
  void restore(const py::bytes& state) { driver_.restore(std::string_view(state)); }
  [[nodiscard]] Picoseconds now() const { return driver_.now(); }
  [[nodiscard]] std::size_t waiting() const { return driver_.waiting(); }

 private:
  static std::vector<system::TenantSpec> specs_of(const std::vector<TenantValues>& tenants) {
    std::vector<system::TenantSpec> specs;
    for (const auto& [arrivals, mix, clients, window] : tenants)
      specs.push_back({*arrivals, *mix, clients, window});
    return specs;
  }

  Driver driver_;
};

}  // namespace

void bind_load(py::module_& module) {
  py::class_<Arrivals>(module, "Arrivals", "When requests come; use pmsim.des.")
      .def(py::init<const std::string&, const std::map<std::string, double>&, std::vector<Picoseconds>,
                    std::uint64_t>(),
           py::arg("kind"), py::arg("numbers"), py::arg("times"), py::arg("seed"))
      .def("next", &Arrivals::next, "Time to the next request; -1: there is none.");
  py::class_<Mix>(module, "Mix", "What requests ask for; use pmsim.des.")
      .def(py::init(&make_mix), py::arg("entries"), py::arg("seed"))
      .def(
          "draw",
          [](Mix& self) {
            const Mix::Draw draw = self.draw();
            return std::tuple(draw.kind, draw.first, draw.count);
          },
          "Kind, first and count of the next request.");
  // No method: a session is bound before mixes are.
  module.def("warm_up", &PySession::warm_up, py::arg("session"), py::arg("mix"), py::arg("requests"),
             py::arg("watch") = py::none(),
             "Executes requests of a mix in no time, before any is submitted. `watch`: as of simulate().");
  py::class_<Recorder>(module, "Recorder",
                       "What has happened to requests: totals and time windows, in bounded memory.")
      .def(py::init([](Picoseconds window, Picoseconds begin) {
             if (window < 1 || begin < 0)
               throw ConfigError("window: must be positive, and its begin not negative");
             return Recorder(window, begin);
           }),
           py::arg("window"), py::arg("begin") = 0)
      .def("submitted", &Recorder::submitted, py::arg("at"), "A request has come.")
      .def("completed", &Recorder::completed, py::arg("submitted"), py::arg("granted"), py::arg("at"),
           "A request has ended.")
      .def("failed", &Recorder::failed, py::arg("at"), "A request has been lost.")
      .def("restart", &Recorder::restart, py::arg("at"), "Only what comes now counts (end of a warm-up).")
      .def("summary", &summary, py::arg("at"), "Totals up to a time.")
      .def("windows", &windows, py::arg("at"), "One dictionary per time window up to `at`, oldest first.")
      .def("latencies", &latencies, py::arg("at"),
           "Requests by time window and bucket, and the largest latency [ps] of each bucket.");
  py::class_<PyDriver>(module, "Driver", "Open loops and closed pools that are served natively; use pmsim.des.")
      .def(py::init<PySession&, const std::vector<TenantValues>&, bool>(), py::arg("session"),
           py::arg("tenants"), py::arg("keep_log") = false, py::keep_alive<1, 2>())
      .def("run", &PyDriver::run, py::arg("until"), py::arg("watch") = py::none(),
           "Runs up to the events of a time, without them. `watch`: as of simulate().")
      .def("log", &PyDriver::log,
           "With keep_log: (tenant, request, worker, submitted, granted, begin, end) per acknowledged request.")
      .def("recorder", &PyDriver::recorder, py::arg("tenant"), py::return_value_policy::reference_internal,
           "What has happened to a tenant's requests.")
      .def("finish", &PyDriver::finish, py::arg("watch") = py::none(),
           "Goes on until every request of arrivals that end has been answered.")
      .def("drain", &PyDriver::drain, "Goes on until no worker is busy; what comes meanwhile waits.")
      .def("save", &PyDriver::save, "The state of a drained driver, for a fresh session.")
      .def("restore", &PyDriver::restore, py::arg("state"), "Continues from a saved state.")
      .def_property_readonly("now", &PyDriver::now, "The time run to.")
      .def_property_readonly("waiting", &PyDriver::waiting, "Requests that wait for a worker.");
}

}  // namespace pmsim::bindings
