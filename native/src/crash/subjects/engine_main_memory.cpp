#include "engine.hpp"
#include "pmsim/blocks/log/file_header.hpp"
#include "pmsim/blocks/log/poplog.hpp"
#include "pmsim/engines/buffer/sites.hpp"
#include "pmsim/engines/wal/sector_log.hpp"

// Subjects: pages in DRAM under the write-ahead log, with their checkpoint image on PMem, or all of it on the
// SSD.

namespace pmsim::crash {

namespace {

engines::EngineOptions tiny() {
  engines::EngineOptions options;
  options.engine = "main-memory";
  options.page_bytes = 4096;
  options.dram_bytes = 10 * options.page_bytes;
  options.log_buffer_bytes = 6 * options.page_bytes;
  options.log_bytes = 4 * options.log_buffer_bytes + 1024;
  return options;
}

/// Restarts with that much log have many steps: not in the program that every test runs.
EngineSubject::Size size_of(std::uint64_t seed) { return {.logged_before = seed % 4 == 3 ? 51e3 : 0}; }

std::unique_ptr<Subject> on_pmem(std::uint64_t seed, Scale scale) {
  return std::make_unique<EngineSubject>(tiny(), size_of(seed), seed, scale);
}
std::unique_ptr<Subject> on_ssd(std::uint64_t seed, Scale scale) {
  engines::EngineOptions options = tiny();
  options.ssd_bytes = options.dram_bytes;
  options.log_device = "ssd";
  return std::make_unique<EngineSubject>(options, size_of(seed), seed, scale);
}

/// The log's; those of page write-back are the subjects pages-*.
constexpr auto kLogOnPmem = engines::buffer::join(blocks::log::FileHeader::kSites, blocks::log::PopLog::kSites);

}  // namespace

extern const SubjectKind kEngineMainMemory;
const SubjectKind kEngineMainMemory{"engine-main-memory",
                                    "storage engine: pages in DRAM, log and checkpoint image on PMem",
                                    kLogOnPmem, on_pmem, false};
extern const SubjectKind kEngineMainMemorySsd;
const SubjectKind kEngineMainMemorySsd{"engine-main-memory-ssd",
                                       "storage engine: pages in DRAM, log and checkpoint image on SSD",
                                       engines::wal::SectorLog::kSites, on_ssd, false};

}  // namespace pmsim::crash
