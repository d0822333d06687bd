#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/host/benchmark.hpp"
#include "pmsim/prototype/convert.hpp"
#include "pmsim/prototype/host_run.hpp"
#include "pmsim/prototype/operation.hpp"
#include "pmsim/prototype/simulated_memory.hpp"

/// What pmsim/prototype/compiled.py compiles behind the header of a program: an extension module with one class
/// for each of the two memories.
namespace pmsim::prototype {

template <typename Program>
[[nodiscard]] std::span<const blocks::SiteInfo> sites_of() {
  if constexpr (requires { std::span<const blocks::SiteInfo>(Program::kSites); })
    return Program::kSites;
  else
    return {};
}

/// What the core and its headers throw is raised as by the core itself.
inline void bind_errors() {
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    const auto raise = [](const char* kind, const std::exception& error) {
      pybind11::set_error(pybind11::module_::import("pmsim").attr(kind), error.what());
    };
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const ConfigError& error) {
      raise("ConfigError", error);
    } catch (const SimulationError& error) {
      raise("SimulationError", error);
    } catch (const std::exception&) {
      throw;  // pybind11 knows it
    } catch (...) {
      std::string name = abi::__cxa_current_exception_type()->name();
      pybind11::detail::clean_type_id(name);
      const std::string says = "it throws something of type '" + name + "', which is no std::exception";
      pybind11::set_error(PyExc_RuntimeError, says.c_str());
    }
  });
}

/// Whether pybind11 knows by itself what it is in Python. A class of one's own is nothing there.
template <typename Value>
inline constexpr bool kConverts =
    !std::is_base_of_v<pybind11::detail::type_caster_generic, pybind11::detail::make_caster<Value>>;

/// On SimulatedMemory, lent for each call.
template <typename Program>
void bind_simulated(pybind11::module_& module) {
  namespace py = pybind11;
  static_assert(!noexcept(std::declval<Program&>().create(std::declval<SimulatedMemory&>())) &&
                    !noexcept(std::declval<Program&>().recover(std::declval<SimulatedMemory&>())),
                "create() or recover() is noexcept, and what fails in memory passes through it");
  static_assert(kConverts<OperationOf<Program>>,
                "run() takes a class of its own; take numbers, texts, Bytes, pairs or containers of these");
  static_assert(kConverts<decltype(std::declval<Program&>().recover(std::declval<SimulatedMemory&>()))>,
                "recover() returns a class of its own; return numbers, texts, Bytes or containers of these");
  const auto lent = [](py::object& memory) { return SimulatedMemory(std::move(memory), sites_of<Program>()); };
  // Local: a program that has been compiled again is another class of the same name.
  py::class_<Program>(module, "Program", py::module_local())
      .def(py::init<>())
      .def("create",
           [lent](Program& program, py::object memory) {
             SimulatedMemory simulated = lent(memory);
             program.create(simulated);
           })
      .def("run",
           [lent](Program& program, py::object memory, const OperationOf<Program>& operation) {
             SimulatedMemory simulated = lent(memory);
             return acknowledges(program, simulated, operation);
           })
      .def("recover", [lent](Program& program, py::object memory) {
        SimulatedMemory simulated = lent(memory);
        return program.recover(simulated);
      });
}

/// Of each repetition: time of an operation [ns], operations per second, share of the processor.
template <typename Run>
std::vector<std::tuple<double, double, double>> measured(Run& run, std::uint32_t repetitions, double seconds) {
  const auto poll = [] {
    if (PyErr_CheckSignals() != 0)
      throw pybind11::error_already_set();
  };
  std::vector<std::tuple<double, double, double>> rows;
  for (const host::Sample& sample :
       host::measure(run, {.repetitions = repetitions, .seconds = seconds, .poll = poll}).samples)
    rows.emplace_back(sample.ns_per_operation, sample.operations_per_s, sample.cpu_share);
  return rows;
}

/// On this machine.
template <typename Program>
void bind_host(pybind11::module_& module) {
  namespace py = pybind11;
  using Run = HostRun<Program>;
  py::class_<Run>(module, "HostRun", py::module_local())
      .def(py::init([](const std::string& path, std::uint64_t bytes, typename Run::Operations operations,
                       std::uint64_t warmup, bool alone) {
             return std::make_unique<Run>(host::Place{.path = path}, bytes, std::move(operations), warmup,
                                          alone);
           }),
           py::kw_only(), py::arg("path"), py::arg("bytes"), py::arg("operations"), py::arg("warmup"),
           py::arg("alone"))
      .def("measure", &measured<Run>, py::kw_only(), py::arg("repetitions"), py::arg("seconds"))
      .def_property_readonly("is_dax", &Run::is_dax)
      .def_property_readonly("done", &Run::done)
      .def_property_readonly("acknowledged", &Run::acknowledged)
      .def("recover", &Run::recover);
}

}  // namespace pmsim::prototype
