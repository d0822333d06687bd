#include <pybind11/stl.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/crash/checker.hpp"
#include "py_program.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

/// Seen from other threads while checks run without the GIL.
class CrashMonitor {
 public:
  std::atomic<std::uint64_t> states{0};
  std::atomic<bool> cancelled{false};

  void violated(const std::string& message) {
    const std::scoped_lock lock(mutex_);
    if (violation_.empty())
      violation_ = message;
  }
  [[nodiscard]] std::string violation() const {
    const std::scoped_lock lock(mutex_);
    return violation_;
  }

 private:
  mutable std::mutex mutex_;
  std::string violation_;
};

py::dict to_dict(crash::CheckReport&& report) {
  py::dict row;
  row["states"] = report.states;
  row["distinct"] = report.distinct;
  row["recovery_crashes"] = report.recovery_crashes;
  row["resumed_crashes"] = report.resumed_crashes;
  row["third_crashes"] = report.third_crashes;
  row["second_recoveries"] = report.second_recoveries;
  row["rewrites"] = report.rewrites;
  row["steps"] = report.steps;
  row["exhaustive_steps"] = report.exhaustive_steps;
  row["small_programs"] = report.small_programs;
  row["large_programs"] = report.large_programs;
  row["seconds"] = report.seconds;
  row["stopped"] = report.stopped;
  row["reached"] = report.reached;
  row["violation"] = py::none();
  if (report.violation) {
    const crash::Violation& found = *report.violation;
    py::dict violation;
    violation["message"] = found.message;
    violation["counterexample"] = found.counterexample;
    violation["seed"] = found.seed;
    violation["scale"] = found.scale == crash::Scale::kSmall ? "small" : "large";
    violation["operation"] = found.operation;
    violation["step"] = found.step;
    violation["failures"] = found.failures;
    violation["recovery_step"] = found.recovery_step;
    violation["resumed_operation"] = found.resumed_operation;
    violation["lost_words"] = found.lost_words;
    violation["second_recovery"] = found.second_recovery;
    py::list left;
    for (const std::shared_ptr<memory::SimMemory>& memory : found.left)
      left.append(std::make_unique<PythonMemory>(std::move(*memory)));
    violation["left"] = py::tuple(left);
    row["violation"] = violation;
  }
  return row;
}

py::list crash_blocks() {
  py::list blocks;
  for (const crash::SubjectKind* kind : crash::subject_kinds()) {
    py::list sites;
    for (const blocks::SiteInfo& site : kind->sites) {
      py::dict entry;
      entry["id"] = site.id;
      entry["name"] = site.name;
      entry["redundant"] = site.redundant;
      sites.append(entry);
    }
    py::dict block;
    block["name"] = kind->name;
    block["title"] = kind->title;
    block["sites"] = sites;
    blocks.append(block);
  }
  return blocks;
}

py::dict check(const crash::SubjectKind& kind, std::uint64_t states, std::uint64_t seed, bool eadr,
               memory::Site disabled, CrashMonitor& monitor, crash::CheckOptions options = {}) {
  options.states = states;
  options.seed = seed;
  options.persistence = eadr ? memory::Persistence::kEadr : memory::Persistence::kAdr;
  options.disabled = disabled;
  options.poll = [&monitor](std::uint64_t done) {
    check_signals();
    monitor.states += done;
    return monitor.cancelled.load();
  };
  options.on_violation = [&monitor](const std::string& message) { monitor.violated(message); };
  crash::CheckReport report;
  {
    const py::gil_scoped_release released;
    report = crash::check(kind, options);
  }
  return to_dict(std::move(report));
}

py::dict crash_check(const std::string& block, std::uint64_t states, std::uint64_t seed, bool eadr,
                     memory::Site disabled, CrashMonitor& monitor) {
  return check(crash::find_subject(block), states, seed, eadr, disabled, monitor);
}

py::dict crash_check_program(const std::string& name, const py::object& make, const py::object& points,
                             std::uint32_t large_programs, std::uint64_t states, std::uint64_t seed, bool eadr,
                             memory::Site disabled, CrashMonitor& monitor) {
  const PyProgramKind program(name, make, points);
  crash::CheckOptions options;
  options.large_programs = large_programs;
  options.poll_every = 8;  // a recovery in Python may take a tenth of a second, and Ctrl-C is to end it soon
  return check(program.kind(), states, seed, eadr, disabled, monitor, std::move(options));
}

}  // namespace

void bind_crash(py::module_& module) {
  py::class_<CrashMonitor>(module, "CrashMonitor", "Follows and cancels crash_check() from another thread.")
      .def(py::init<>())
      .def_property_readonly(
          "states", [](const CrashMonitor& self) { return self.states.load(); }, "Crash states checked so far.")
      .def_property_readonly("violation", &CrashMonitor::violation,
                             "Message of the first violation, known before it is made small; empty: none.")
      .def("cancel", [](CrashMonitor& self) { self.cancelled = true; }, "Ends the check soon.");
  module.def("crash_blocks", &crash_blocks, "Blocks that the crash checker knows: name, title, sites.");
  module.def("crash_check", &crash_check, py::arg("block"), py::kw_only(), py::arg("states") = 100'000,
             py::arg("seed") = 1, py::arg("eadr") = false, py::arg("disabled") = 0, py::arg("monitor"),
             "Crashes a block at every persistence step and checks what recovery finds; disabled removes one "
             "persistence point. Raises ConfigError for an unknown block.");
  module.def("crash_check_program", &crash_check_program, py::arg("name"), py::arg("make"), py::arg("points"),
             py::kw_only(), py::arg("large_programs") = crash::CheckOptions{}.large_programs,
             py::arg("states") = 100'000, py::arg("seed") = 1, py::arg("eadr") = false, py::arg("disabled") = 0,
             py::arg("monitor"),
             "The same for a program in Python (pmsim.prototype): make(seed, small) gives one, points() the "
             "names of its persistence points, of which the first has the number 1.");
}

}  // namespace pmsim::bindings
