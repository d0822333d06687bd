#include "pmsim/engines/nvm_direct_store.hpp"

#include <memory>

#include "kinds.hpp"
#include "pmsim/engines/tree_engine.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines {

template <memory::Memory M>
EngineKind<M> nvm_direct_kind() {
  return engine_kind<M, TreeEngine<M, NvmDirectStore<M>>>("nvm-direct", "pages on PMem, changed where they are",
                                                          memory::Medium::kPmem);
}

template EngineKind<memory::SimMemory> nvm_direct_kind();
template EngineKind<memory::HostMemory> nvm_direct_kind();

}  // namespace pmsim::engines
