#include <span>
#include <string>
#include <vector>

#include "kinds.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines {

template <memory::Memory M>
std::span<const EngineKind<M>> engine_kinds() noexcept {
  static const std::vector<EngineKind<M>> kinds{
      main_memory_kind<M>(),
      nvm_direct_kind<M>(),
      nvm_undo_kind<M>(),
      fptree_kind<M>(),
      buffered_kind<M>("basic-nvm-bm", "DRAM caches whole pages of PMem", memory::Medium::kPmem),
      buffered_kind<M>("file-bm",
                       "DRAM caches whole pages of files on PMem, by read() and write() (PostgreSQL)",
                       memory::Medium::kPmem),
      buffered_kind<M>("redirect-bm",
                       "buffers point to their pages on PMem until these are changed (PostgreSQL, SE2)",
                       memory::Medium::kPmem),
      buffered_kind<M>("ssd-bm", "DRAM caches pages of the SSD", memory::Medium::kBlock),
      buffered_kind<M>("three-tier", "DRAM over PMem over SSD, cache-line-grained (HyMem)",
                       memory::Medium::kBlock),
      buffered_kind<M>("spitfire",
                       "three tiers, PMem used directly too; four migration probabilities (Spitfire)",
                       memory::Medium::kBlock),
  };
  return kinds;
}

template <memory::Memory M>
const EngineKind<M>& engine_named(std::string_view name) {
  std::string known;
  for (const EngineKind<M>& kind : engine_kinds<M>()) {
    if (kind.name == name)
      return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw ConfigError("engine = '" + std::string(name) + "': unknown; known: " + known);
}

template std::span<const EngineKind<memory::SimMemory>> engine_kinds() noexcept;
template std::span<const EngineKind<memory::HostMemory>> engine_kinds() noexcept;
template const EngineKind<memory::SimMemory>& engine_named(std::string_view name);
template const EngineKind<memory::HostMemory>& engine_named(std::string_view name);

}  // namespace pmsim::engines
