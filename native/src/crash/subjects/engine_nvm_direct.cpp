#include "engine.hpp"

#include "pmsim/engines/nvm_direct_store.hpp"

namespace pmsim::crash {

namespace {

std::unique_ptr<Subject> make_for(std::uint32_t threads, std::uint64_t seed, Scale scale) {
  engines::EngineOptions options;
  options.engine = "nvm-direct";
  options.page_bytes = 4096;
  options.pmem_bytes = 20 * options.page_bytes;
  options.log_bytes = 128 << 10;
  options.threads = threads;
  return std::make_unique<EngineSubject>(options, EngineSubject::Size::in_place(seed), seed, scale);
}
std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) { return make_for(1, seed, scale); }
std::unique_ptr<Subject> make_for_threads(std::uint64_t seed, Scale scale) { return make_for(3, seed, scale); }

}  // namespace

extern const SubjectKind kEngineNvmDirect;
const SubjectKind kEngineNvmDirect{"engine-nvm-direct", "storage engine that changes pages in place on PMem",
                                   engines::NvmDirectStore<memory::SimMemory>::kSites, make, false};
extern const SubjectKind kEngineNvmDirectThreads;
const SubjectKind kEngineNvmDirectThreads{
    "engine-nvm-direct-threads", "the same, by three threads with a log each",
    engines::NvmDirectStore<memory::SimMemory>::kSites, make_for_threads, false};

}  // namespace pmsim::crash
