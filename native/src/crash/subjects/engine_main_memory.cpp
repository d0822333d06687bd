#include "engine.hpp"

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

constexpr EngineSubject::Size kSize{.logged_before = 90e3};
/// Pages come into being and are gone again, in different logs.
constexpr EngineSubject::Size kSizeOfLogs{
    .transactions = 16, .most_operations = 6, .beside = true, .logged_before = kFillsALog};

std::unique_ptr<Subject> on_pmem(std::uint64_t seed, Scale scale) {
  return std::make_unique<EngineSubject>(tiny(), kSize, seed, scale);
}
std::unique_ptr<Subject> on_ssd(std::uint64_t seed, Scale scale) {
  engines::EngineOptions options = tiny();
  options.ssd_bytes = options.dram_bytes;
  options.log_device = "ssd";
  return std::make_unique<EngineSubject>(options, kSize, seed, scale);
}

std::unique_ptr<Subject> with_logs(std::uint64_t seed, Scale scale) {
  engines::EngineOptions options = tiny();
  give_logs(options);
  return std::make_unique<EngineSubject>(options, kSizeOfLogs, seed, scale);
}

}  // namespace

extern const SubjectKind kEngineMainMemory;
const SubjectKind kEngineMainMemory{"engine-main-memory",
                                    "storage engine: pages in DRAM, log and checkpoint image on PMem",
                                    kPmemLogPoints, on_pmem, false};
extern const SubjectKind kEngineMainMemorySsd;
const SubjectKind kEngineMainMemorySsd{"engine-main-memory-ssd",
                                       "storage engine: pages in DRAM, log and checkpoint image on SSD",
                                       kSsdLogPoints, on_ssd, false};
extern const SubjectKind kEngineMainMemoryLogs;
const SubjectKind kEngineMainMemoryLogs{"engine-main-memory-logs",
                                        "the same on PMem, by three threads with a log each", kPmemLogsPoints,
                                        with_logs, false};

}  // namespace pmsim::crash
