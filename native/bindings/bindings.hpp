#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <string>
#include <vector>

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

}  // namespace pmsim::bindings
