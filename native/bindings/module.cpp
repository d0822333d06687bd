#include <pybind11/pybind11.h>

#include "bindings.hpp"

PYBIND11_MODULE(_native, module) {
  module.doc() = "C++ core of pmsim; use the package pmsim.";
  module.attr("__version__") = PMSIM_VERSION;
  pmsim::bindings::bind_errors(module);
  pmsim::bindings::bind_platform(module);
  pmsim::bindings::bind_simulate(module);
  pmsim::bindings::bind_memory(module);
  pmsim::bindings::bind_trace(module);
  pmsim::bindings::bind_trace_file(module);
  pmsim::bindings::bind_host(module);
  pmsim::bindings::bind_crash(module);
  pmsim::bindings::bind_system(module);
  pmsim::bindings::bind_engines(module);
  pmsim::bindings::bind_load(module);
  pmsim::bindings::bind_buffer(module);
}
