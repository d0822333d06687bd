#include "pmsim/crash/registry.hpp"

#include <string>
#include <vector>

#include "pmsim/core/error.hpp"

namespace pmsim::crash {

// One declaration and one row per subject, or per family of them; each is defined in subjects/NAME.cpp.
extern const SubjectKind kLeafInsert;
extern const SubjectKind kLeafGroupInsert;
extern const SubjectKind kUndoLog;
extern const SubjectKind kLogSsd;
extern const SubjectKind kUndoHeap;
extern const SubjectKind kSortedRun;
extern const SubjectKind kSortedRunIndividual;
extern const SubjectKind kSortedRunTransaction;
std::vector<const SubjectKind*> in_place_subjects();
std::vector<const SubjectKind*> log_subjects();
std::span<const SubjectKind> node_subjects();

// Page propagation.
extern const SubjectKind kPageCow;
extern const SubjectKind kPageCowClwb;
extern const SubjectKind kPageCowLoad;
extern const SubjectKind kPageCowInvalidate;
extern const SubjectKind kPageCowInvalidateClwb;
extern const SubjectKind kPageMicroLog;
extern const SubjectKind kPageMicroLogClwb;
extern const SubjectKind kPageHybrid;
extern const SubjectKind kPageChecksum;
extern const SubjectKind kPageChecksumClwb;

// Engines.
extern const SubjectKind kEngineFpTree;
extern const SubjectKind kPagesPmemHome;
extern const SubjectKind kPagesSsdHome;
extern const SubjectKind kPagesThreeTiers;
extern const SubjectKind kPagesDirect;
extern const SubjectKind kPagesPmemHomeFlushed;
extern const SubjectKind kPagesThreeTiersFlushed;
extern const SubjectKind kEngineNvmDirect;
extern const SubjectKind kEngineNvmDirectThreads;
extern const SubjectKind kEngineNvmUndo;
extern const SubjectKind kEngineNvmUndoThreads;
extern const SubjectKind kEngineBasicNvmBm;
extern const SubjectKind kEngineFileBm;
extern const SubjectKind kEngineRedirectBm;
extern const SubjectKind kEngineSsdBm;
extern const SubjectKind kEngineThreeTier;
extern const SubjectKind kEngineSpitfire;
extern const SubjectKind kEngineMainMemory;
extern const SubjectKind kEngineMainMemorySsd;
extern const SubjectKind kEngineMainMemoryLogs;
extern const SubjectKind kEngineSsdBmLogs;
extern const SubjectKind kEngineThreeTierLogs;
extern const SubjectKind kEngineSpitfireLogs;
extern const SubjectKind kEngineSsdBmGroups;

std::span<const SubjectKind* const> subject_kinds() noexcept {
  static const std::vector<const SubjectKind*> kinds = [] {
    std::vector<const SubjectKind*> all{
        &kPageCow,
        &kPageCowClwb,
        &kPageCowLoad,
        &kPageCowInvalidate,
        &kPageCowInvalidateClwb,
        &kPageMicroLog,
        &kPageMicroLogClwb,
        &kPageHybrid,
        &kPageChecksum,
        &kPageChecksumClwb,
        &kLeafInsert,
        &kLeafGroupInsert,
        &kUndoLog,
        &kLogSsd,
        &kUndoHeap,
        &kSortedRun,
        &kSortedRunIndividual,
        &kSortedRunTransaction,
        &kEngineFpTree,
        &kPagesPmemHome,
        &kPagesSsdHome,
        &kPagesThreeTiers,
        &kPagesDirect,
        &kPagesPmemHomeFlushed,
        &kPagesThreeTiersFlushed,
        &kEngineNvmDirect,
        &kEngineNvmDirectThreads,
        &kEngineNvmUndo,
        &kEngineNvmUndoThreads,
        &kEngineBasicNvmBm,
        &kEngineFileBm,
        &kEngineRedirectBm,
        &kEngineSsdBm,
        &kEngineThreeTier,
        &kEngineSpitfire,
        &kEngineMainMemory,
        &kEngineMainMemorySsd,
        &kEngineMainMemoryLogs,
        &kEngineSsdBmLogs,
        &kEngineThreeTierLogs,
        &kEngineSpitfireLogs,
        &kEngineSsdBmGroups,
    };
    const std::vector<const SubjectKind*> in_place = in_place_subjects();
    all.insert(all.begin(), in_place.begin(), in_place.end());
    for (const SubjectKind* log : log_subjects())
      all.push_back(log);
    for (const SubjectKind& node : node_subjects())
      all.push_back(&node);
    return all;
  }();
  return kinds;
}

const SubjectKind& find_subject(std::string_view name) {
  std::string known;
  for (const SubjectKind* kind : subject_kinds()) {
    if (kind->name == name) {
      return *kind;
    }
    known += (known.empty() ? "" : ", ") + std::string(kind->name);
  }
  throw ConfigError("block \"" + std::string(name) + "\" is unknown; known: " + known);
}

}  // namespace pmsim::crash
