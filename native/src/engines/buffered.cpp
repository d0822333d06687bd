#include <memory>

#include "kinds.hpp"
#include "pmsim/engines/buffered_store.hpp"
#include "pmsim/engines/tree_engine.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines {

template <memory::Memory M>
EngineKind<M> buffered_kind(std::string_view name, std::string_view title, memory::Medium home) {
  return engine_kind<M, TreeEngine<M, BufferedStore<M>>>(name, title, home);
}

template EngineKind<memory::SimMemory> buffered_kind(std::string_view name, std::string_view title,
                                                     memory::Medium home);
template EngineKind<memory::HostMemory> buffered_kind(std::string_view name, std::string_view title,
                                                      memory::Medium home);

}  // namespace pmsim::engines
