#include "pmsim/system/service.hpp"

#include "pmsim/core/error.hpp"

namespace pmsim::system {

void Service::restart(memory::SimMemory, memory::Stream&) {
  throw ConfigError("this service cannot be crashed; it keeps nothing that survives");
}

std::vector<std::uint64_t> Service::present() { throw ConfigError("this service cannot say what it holds"); }

}  // namespace pmsim::system
