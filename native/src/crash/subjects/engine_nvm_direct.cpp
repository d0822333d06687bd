#include "engine.hpp"

#include "pmsim/engines/nvm_direct_store.hpp"

namespace pmsim::crash {

namespace {

std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) {
  engines::EngineOptions options;
  options.engine = "nvm-direct";
  options.page_bytes = 4096;
  options.pmem_bytes = 10 * options.page_bytes;
  options.log_bytes = 128 << 10;
  return std::make_unique<EngineSubject>(options, EngineSubject::Size{.checkpoints = false}, seed, scale);
}

}  // namespace

extern const SubjectKind kEngineNvmDirect;
const SubjectKind kEngineNvmDirect{"engine-nvm-direct", "storage engine that changes pages in place on PMem",
                                   engines::NvmDirectStore<memory::SimMemory>::kSites, make, false};

}  // namespace pmsim::crash
