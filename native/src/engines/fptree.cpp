#include "kinds.hpp"
#include "pmsim/engines/fptree/engine.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines {

template <memory::Memory M>
EngineKind<M> fptree_kind() {
  return engine_kind<M, fptree::FpTreeEngine<M>>(
      "fptree", "inner nodes in DRAM, fingerprinted leaves on PMem (FPTree)", memory::Medium::kPmem);
}

template EngineKind<memory::SimMemory> fptree_kind();
template EngineKind<memory::HostMemory> fptree_kind();

}  // namespace pmsim::engines
