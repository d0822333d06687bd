#include "engine.hpp"

// Subjects: the buffer managers under the write-ahead log, with DRAM for fewer pages than there are.

namespace pmsim::crash {

namespace {

constexpr std::uint32_t kPageBytes = 4096;

engines::EngineOptions tiny(const char* engine) {
  engines::EngineOptions options;
  options.engine = engine;
  options.page_bytes = kPageBytes;
  options.dram_bytes = 8 * (kPageBytes + 256);
  options.pmem_bytes = 3 * kPageBytes;
  options.ssd_bytes = 24 * kPageBytes;
  options.log_buffer_bytes = 6 * kPageBytes;
  options.log_bytes = 4 * options.log_buffer_bytes + 1024;
  options.admission_entries = 2;
  return options;
}

/// Where two transactions run beside each other, each of which keeps its pages in DRAM.
constexpr std::uint64_t kDramForTwo = 12 * (kPageBytes + 256);

/// Two rows per page, ten pages and more.
constexpr EngineSubject::Size kSize{.transactions = 6,
                                    .most_operations = 3,
                                    .payload_bytes = 1900,
                                    .rows = 14,
                                    .keys = 22,
                                    .logged_before = 90e3};

/// Pages come into being and are gone again, in different logs; a split follows an update.
constexpr EngineSubject::Size kLongSize = [] {
  EngineSubject::Size size = kSize;
  size.transactions = 16;
  return size;
}();

std::unique_ptr<Subject> on_pmem(const char* engine, std::uint64_t seed, Scale scale) {
  engines::EngineOptions options = tiny(engine);
  options.pmem_bytes = 24 * kPageBytes;
  return std::make_unique<EngineSubject>(options, kSize, seed, scale);
}
std::unique_ptr<Subject> basic_nvm_bm(std::uint64_t seed, Scale scale) {
  return on_pmem("basic-nvm-bm", seed, scale);
}
std::unique_ptr<Subject> file_bm(std::uint64_t seed, Scale scale) { return on_pmem("file-bm", seed, scale); }
std::unique_ptr<Subject> redirect_bm(std::uint64_t seed, Scale scale) {
  return on_pmem("redirect-bm", seed, scale);
}
/// Without any PMem.
std::unique_ptr<Subject> ssd_bm(std::uint64_t seed, Scale scale) {
  engines::EngineOptions options = tiny("ssd-bm");
  options.log_device = "ssd";
  return std::make_unique<EngineSubject>(options, kSize, seed, scale);
}
std::unique_ptr<Subject> three_tier(std::uint64_t seed, Scale scale) {
  return std::make_unique<EngineSubject>(tiny("three-tier"), kSize, seed, scale);
}
engines::EngineOptions spitfire_options(std::uint64_t seed) {
  engines::EngineOptions options = tiny("spitfire");
  options.migration = {0.3, 0.3, 0.7, 0.7};
  options.seed = seed;
  return options;
}
std::unique_ptr<Subject> spitfire(std::uint64_t seed, Scale scale) {
  return std::make_unique<EngineSubject>(spitfire_options(seed), kLongSize, seed, scale);
}
std::unique_ptr<Subject> with_logs(engines::EngineOptions options, std::uint64_t seed, Scale scale) {
  give_logs(options);
  options.dram_bytes = kDramForTwo;
  EngineSubject::Size size = kLongSize;
  size.logged_before = kFillsALog;
  size.beside = true;
  return std::make_unique<EngineSubject>(options, size, seed, scale);
}
std::unique_ptr<Subject> three_tier_logs(std::uint64_t seed, Scale scale) {
  return with_logs(tiny("three-tier"), seed, scale);
}
std::unique_ptr<Subject> spitfire_logs(std::uint64_t seed, Scale scale) {
  return with_logs(spitfire_options(seed), seed, scale);
}
/// Without the horizon's fence: rows are forced where they lie, the logs are truncated too seldom to tell.
constexpr std::array kSpitfireLogsPoints{kPmemLogsPoints[0], kPmemLogsPoints[1], kPmemLogsPoints[2]};

/// Without any PMem.
std::unique_ptr<Subject> ssd_bm_logs(std::uint64_t seed, Scale scale) {
  engines::EngineOptions options = tiny("ssd-bm");
  options.log_device = "ssd";
  return with_logs(options, seed, scale);
}
/// Three threads with one log, whose batches wait in buffers of their own.
std::unique_ptr<Subject> ssd_bm_groups(std::uint64_t seed, Scale scale) {
  engines::EngineOptions options = tiny("ssd-bm");
  options.log_device = "ssd";
  options.threads = 3;
  options.commits = "group";
  options.dram_bytes = kDramForTwo;
  options.log_bytes = 9 * options.log_buffer_bytes;  // room for two transactions, with their rollback
  EngineSubject::Size size = kLongSize;
  size.logged_before = kFillsALog;
  size.beside = true;
  return std::make_unique<EngineSubject>(options, size, seed, scale);
}

}  // namespace

extern const SubjectKind kEngineBasicNvmBm;
const SubjectKind kEngineBasicNvmBm{"engine-basic-nvm-bm",
                                    "storage engine: DRAM over pages on PMem, log on PMem", kPmemLogPoints,
                                    basic_nvm_bm, false};
extern const SubjectKind kEngineFileBm;
const SubjectKind kEngineFileBm{"engine-file-bm",
                                "storage engine: pages on PMem by read() and write(), log on PMem",
                                kPmemLogPoints, file_bm, false};
extern const SubjectKind kEngineRedirectBm;
const SubjectKind kEngineRedirectBm{"engine-redirect-bm",
                                    "storage engine: buffers point to pages on PMem, log on PMem",
                                    kPmemLogPoints, redirect_bm, false};
extern const SubjectKind kEngineSsdBm;
const SubjectKind kEngineSsdBm{"engine-ssd-bm", "storage engine: DRAM over pages on SSD, log on SSD",
                               kSsdLogPoints, ssd_bm, false};
extern const SubjectKind kEngineThreeTier;
const SubjectKind kEngineThreeTier{"engine-three-tier", "storage engine: DRAM, PMem and SSD, log on PMem",
                                   kPmemLogPoints, three_tier, false};
extern const SubjectKind kEngineSpitfire;
const SubjectKind kEngineSpitfire{"engine-spitfire",
                                  "storage engine: DRAM, PMem and SSD, rows used in place on PMem too",
                                  kPmemLogPoints, spitfire, false};

// The same, by three threads with a log each.
extern const SubjectKind kEngineSsdBmLogs;
const SubjectKind kEngineSsdBmLogs{"engine-ssd-bm-logs",
                                   "storage engine: DRAM over pages on SSD, three threads with a log each",
                                   kSsdLogsPoints, ssd_bm_logs, false};
extern const SubjectKind kEngineThreeTierLogs;
const SubjectKind kEngineThreeTierLogs{"engine-three-tier-logs",
                                       "storage engine: DRAM, PMem and SSD, three threads with a log each",
                                       kPmemLogsPoints, three_tier_logs, false};
extern const SubjectKind kEngineSpitfireLogs;
const SubjectKind kEngineSpitfireLogs{
    "engine-spitfire-logs", "storage engine: rows used in place on PMem, three threads with a log each",
    kSpitfireLogsPoints, spitfire_logs, false};
extern const SubjectKind kEngineSsdBmGroups;
const SubjectKind kEngineSsdBmGroups{
    "engine-ssd-bm-groups", "storage engine: DRAM over pages on SSD, three threads that commit in groups",
    kSsdLogPoints, ssd_bm_groups, false};

}  // namespace pmsim::crash
