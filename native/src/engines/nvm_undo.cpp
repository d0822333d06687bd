#include "kinds.hpp"
#include "pmsim/engines/tree_engine.hpp"
#include "pmsim/engines/undo_store.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines {

template <memory::Memory M>
EngineKind<M> nvm_undo_kind() {
  return engine_kind<M, TreeEngine<M, UndoStore<M>>>(
      "nvm-undo", "pages on PMem, changed in transactions with an undo log (libpmemobj)",
      memory::Medium::kPmem);
}

template EngineKind<memory::SimMemory> nvm_undo_kind();
template EngineKind<memory::HostMemory> nvm_undo_kind();

}  // namespace pmsim::engines
