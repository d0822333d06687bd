#include <memory>

#include "kinds.hpp"
#include "pmsim/engines/logged_memory_store.hpp"
#include "pmsim/engines/tree_engine.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines {

template <memory::Memory M>
EngineKind<M> main_memory_kind() {
  return engine_kind<M, TreeEngine<M, LoggedMemoryStore<M>>>(
      "main-memory", "pages in DRAM; a checkpoint image below", memory::Medium::kDram);
}

template EngineKind<memory::SimMemory> main_memory_kind();
template EngineKind<memory::HostMemory> main_memory_kind();

}  // namespace pmsim::engines
