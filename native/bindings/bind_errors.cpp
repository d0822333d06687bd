#include <exception>
#include <new>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

void bind_errors(py::module_& module) {
  static_cast<void>(module);
  // The classes live in pmsim.errors and are looked up when they are needed: the package imports this module.
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    const auto raise = [](const char* name, const std::exception& error) {
      const py::object type = py::module_::import("pmsim.errors").attr(name);
      PyErr_SetString(type.ptr(), error.what());
    };
    try {
      if (pointer) {
        std::rethrow_exception(pointer);
      }
    } catch (const CapacityError& error) {
      raise("CapacityError", error);
    } catch (const HostMemoryError& error) {
      raise("HostMemoryError", error);
    } catch (const ConfigError& error) {
      raise("ConfigError", error);
    } catch (const SimulationError& error) {
      raise("SimulationError", error);
    } catch (const std::bad_alloc&) {
      // `ulimit -v`, or a host that does not promise more memory than it has.
      raise("HostMemoryError",
            HostMemoryError("the host refuses memory that the simulation needs; choose less data "
                            "(a smaller scale, fewer pages or rows), or raise `ulimit -v`"));
    }
  });
}

}  // namespace pmsim::bindings
