#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/machine/simulate.hpp"
#include "pmsim/workloads/parameters.hpp"

namespace pmsim::bindings {

/// Each registers one topic; module.cpp is their table of contents.
void bind_errors(pybind11::module_& module);
void bind_platform(pybind11::module_& module);
void bind_simulate(pybind11::module_& module);
void bind_memory(pybind11::module_& module);
void bind_trace(pybind11::module_& module);
void bind_trace_file(pybind11::module_& module);
void bind_host(pybind11::module_& module);
void bind_crash(pybind11::module_& module);
void bind_system(pybind11::module_& module);
void bind_engines(pybind11::module_& module);
void bind_load(pybind11::module_& module);
void bind_buffer(pybind11::module_& module);

/// section -> name -> value in base units, as Python's Platform.native() gives it.
using PlatformValues = std::map<std::string, std::map<std::string, std::int64_t>>;
using WorkloadValues = std::map<std::string, workloads::Parameters::Value>;

/// Throws ConfigError for an unknown, missing or impossible value.
[[nodiscard]] machine::PlatformParams to_platform(const PlatformValues& values);
[[nodiscard]] std::vector<machine::PlatformParams> to_platforms(const std::vector<PlatformValues>& values);

/// The dictionary that simulate() returns for a lane.
[[nodiscard]] pybind11::dict to_dict(const machine::LaneResult& result);

/// Throws the pending Python exception where the user has pressed Ctrl-C. Takes the GIL.
void check_signals();

/// The Python side of a Watch: notices Ctrl-C, and tells a callable what the run is doing, where there is one.
class PyWatch {
 public:
  /// `told`: None, or called with the name of the phase and the share of it that is done, some ten times per
  /// second.
  explicit PyWatch(const pybind11::object& told) : told_(told) {}
  PyWatch(const PyWatch&) = delete;
  PyWatch& operator=(const PyWatch&) = delete;

  /// For calls without the GIL, which it takes; must not outlive this object.
  [[nodiscard]] Watch watch() {
    return [this](Doing doing) { tell(doing); };
  }

 private:
  void tell(Doing doing);

  const pybind11::object& told_;  ///< a copy in the Watch could be copied without the GIL
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace pmsim::bindings
