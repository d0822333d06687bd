#include "engine.hpp"

#include "pmsim/engines/undo_store.hpp"

namespace pmsim::crash {

namespace {

std::unique_ptr<Subject> make_for(std::uint32_t threads, std::uint64_t seed, Scale scale) {
  engines::EngineOptions options;
  options.engine = "nvm-undo";
  options.page_bytes = 4096;
  options.pmem_bytes = 20 * options.page_bytes;
  options.log_bytes = 128 << 10;
  options.threads = threads;
  return std::make_unique<EngineSubject>(options, EngineSubject::Size::in_place(seed), seed, scale);
}
std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) { return make_for(1, seed, scale); }
std::unique_ptr<Subject> make_for_threads(std::uint64_t seed, Scale scale) { return make_for(3, seed, scale); }

/// Without those of the log's creation: an engine is known only when its tables have been loaded.
constexpr auto kSites = [] {
  using Log = blocks::undo::UndoLog;
  constexpr auto& kWords = blocks::undo::RedoLog::kWordSites;
  constexpr auto& kLoads = engines::UndoStore<memory::SimMemory>::kLoadSites;
  constexpr std::size_t kCreation = 3;
  std::array<blocks::SiteInfo, Log::kSites.size() - kCreation + kWords.size() + kLoads.size()> sites{};
  auto end = std::copy(Log::kSites.begin() + kCreation, Log::kSites.end(), sites.begin());
  end = std::copy(kWords.begin(), kWords.end(), end);
  std::copy(kLoads.begin(), kLoads.end(), end);
  return sites;
}();

}  // namespace

extern const SubjectKind kEngineNvmUndo;
const SubjectKind kEngineNvmUndo{"engine-nvm-undo",
                                 "storage engine that changes pages on PMem in transactions with an undo log",
                                 kSites, make, false};
extern const SubjectKind kEngineNvmUndoThreads;
const SubjectKind kEngineNvmUndoThreads{"engine-nvm-undo-threads", "the same, by three threads with a log each",
                                        kSites, make_for_threads, false};

}  // namespace pmsim::crash
