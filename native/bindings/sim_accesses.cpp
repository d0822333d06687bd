#include "sim_accesses.hpp"

#include <span>

#include "pmsim/core/error.hpp"
#include "python_memory.hpp"

namespace pmsim::bindings {

using memory::Address;
using memory::Site;

namespace {

/// What the core takes for a bug of its own is here one of the program.
void need_words(const char* what, std::uint64_t value) {
  if ((value & (memory::kAtomicBytes - 1)) != 0)
    throw ConfigError(std::string(what) + " needs multiples of 8 bytes");
}

}  // namespace

void SimAccesses::read(Address address, std::byte* into, std::size_t bytes, bool dependent) {
  if (dependent)
    memory_.memory().read_dependent(address, {into, bytes});
  else
    memory_.memory().read(address, {into, bytes});
}
void SimAccesses::write(Address address, const std::byte* from, std::size_t bytes) {
  memory_.memory().write(address, {from, bytes});
}
void SimAccesses::stream(Address address, const std::byte* from, std::size_t bytes) {
  need_words("stream()", address | bytes);
  memory_.memory().stream(address, {from, bytes});
}
void SimAccesses::flush(Address address, std::size_t bytes, memory::FlushKind kind, Site site) {
  memory_.memory().flush(address, bytes, kind, site);
}
void SimAccesses::sfence(Site site) { memory_.memory().sfence(site); }
void SimAccesses::mfence(Site site) { memory_.memory().mfence(site); }
void SimAccesses::order(Site site) { memory_.memory().order(site); }
void SimAccesses::prefetch(Address address) { memory_.memory().prefetch(address); }
std::uint64_t SimAccesses::fetch_add(Address address, std::uint64_t delta) {
  need_words("fetch_add()", address);
  return memory_.memory().fetch_add(address, delta);
}
std::uint64_t SimAccesses::compare_exchange(Address address, std::uint64_t expected, std::uint64_t desired) {
  need_words("compare_exchange()", address);
  return memory_.memory().compare_exchange(address, expected, desired);
}
void SimAccesses::compute(std::uint64_t cycles, std::uint32_t instructions) {
  memory_.memory().compute(cycles, instructions);
}
void SimAccesses::mispredict(memory::BranchOn on) { memory_.memory().mispredict(on); }
void SimAccesses::block_read(Address device, Address destination, std::size_t bytes) {
  memory_.memory().block_read(device, destination, bytes);
}
void SimAccesses::block_write(Address device, Address source, std::size_t bytes) {
  memory_.memory().block_write(device, source, bytes);
}
void SimAccesses::block_flush(Site site) { memory_.memory().block_flush(site); }

}  // namespace pmsim::bindings
