#include <pybind11/pybind11.h>

PYBIND11_MODULE(_native, module) {
  module.doc() = "C++ core of pmsim; use the package pmsim.";
  module.attr("__version__") = PMSIM_VERSION;
}
