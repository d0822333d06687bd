#include "pmsim/workloads/oltp/options.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

namespace pmsim::workloads::oltp {

namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;

std::uint64_t bytes(Parameters& parameters, std::string_view name) {
  return static_cast<std::uint64_t>(parameters.number(name, 0, kMaxBytes));
}
bool flag(Parameters& parameters, std::string_view name) { return parameters.number(name, 0, 1) != 0; }

engines::ScanMode scan_mode(bool hint, bool prefetch) {
  if (prefetch)
    return engines::ScanMode::kPrefetchNext;
  return hint ? engines::ScanMode::kFullPages : engines::ScanMode::kGrained;
}

}  // namespace

double real_number(Parameters& parameters, std::string_view name, double low, double high) {
  const std::string text = parameters.text(name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= low && value <= high))
    parameters.refuse(name, "must be a number from " + std::to_string(low) + " to " + std::to_string(high));
  return value;
}

engines::EngineOptions read_engine_options(Parameters& parameters, std::uint64_t seed) {
  engines::EngineOptions options;
  options.engine = parameters.text("engine");
  options.dram_bytes = bytes(parameters, "dram_capacity");
  options.pmem_bytes = bytes(parameters, "pmem_capacity");
  options.ssd_bytes = bytes(parameters, "ssd_capacity");
  options.page_bytes = static_cast<std::uint32_t>(parameters.number("page_size", 4096, 65536));
  options.cache_line_grained = flag(parameters, "cache_line_grained");
  options.mini_pages = flag(parameters, "mini_pages");
  options.pointer_swizzling = flag(parameters, "pointer_swizzling");
  options.leaf_layout = parameters.choice("leaf_layout", {"sorted", "hash"});
  options.admission_entries = bytes(parameters, "admission_entries");
  options.migration = {
      real_number(parameters, "migration_dr", 0, 1), real_number(parameters, "migration_dw", 0, 1),
      real_number(parameters, "migration_nr", 0, 1), real_number(parameters, "migration_nw", 0, 1)};
  options.page_write = parameters.choice("page_write", {"ntstore", "store+clwb"});
  options.log_device = parameters.choice("log_device", {"pmem", "ssd", "unwritten", "none"});
  options.log_algorithm = parameters.text("log_algorithm");
  options.log_layout = parameters.text("log_layout");
  options.log_bytes = bytes(parameters, "log_size");
  options.logs = parameters.choice("logs", {"shared", "per-thread"});
  options.commits = parameters.choice("commits", {"single", "group"});
  options.cleaning = parameters.choice("cleaning", {"due", "paced"});
  options.library_cycles = static_cast<std::uint32_t>(parameters.number("library_cycles", 0, 1'000'000));
  options.system_call_cycles =
      static_cast<std::uint32_t>(parameters.number("system_call_cycles", 0, 1'000'000));
  options.system_call_copies = static_cast<std::uint32_t>(parameters.number("system_call_copies", 1, 2));
  options.cpu_cycles = static_cast<std::uint32_t>(parameters.number("cpu_cycles", 0, 1'000'000));
  options.transaction_cycles =
      static_cast<std::uint32_t>(parameters.number("transaction_cycles", 0, 1'000'000));
  options.threads = static_cast<std::uint32_t>(parameters.number("threads", 1, 1024));
  options.latches = parameters.choice("latches", {"none", "shared", "optimistic"});
  options.fixes = parameters.choice("fixes", {"counted", "optimistic"});
  options.seed = seed;
  return options;
}

WorkloadOptions read_workload_options(Parameters& parameters, const engines::EngineOptions& engine,
                                      std::uint64_t seed) {
  WorkloadOptions options;
  options.workload = parameters.choice("workload", {kWorkloads.begin(), kWorkloads.end()});
  options.data_bytes = bytes(parameters, "data_size");
  options.warehouses = static_cast<std::uint32_t>(parameters.number("warehouses", 0, tpcc::kMaxWarehouses));
  options.locks = {
      .copies = static_cast<std::uint32_t>(parameters.number("lock_copies", 0, tpcc::kMaxWarehouses)),
      .early = flag(parameters, "lock_early"),
  };
  options.update_percent = static_cast<std::uint32_t>(parameters.number("update_percent", 0, 100));
  options.scan_length = static_cast<std::uint32_t>(parameters.number("scan_length", 0, 1 << 30));
  options.scan_mode = scan_mode(flag(parameters, "scan_hint"), flag(parameters, "scan_prefetch"));
  options.row_cycles = static_cast<std::uint32_t>(parameters.number("row_cycles", 0, 1'000'000));
  options.whole_rows = parameters.choice("access", {"field", "row"}) == "row";
  options.zipf = real_number(parameters, "zipf", 0, 100);
  options.engine = engine;
  options.fill = real_number(parameters, "fill_factor", 0.1, 1);
  options.loading =
      parameters.choice("loading", {"bulk", "inserts"}) == "bulk" ? Loading::kBulk : Loading::kInserts;
  options.row_bytes = static_cast<std::uint32_t>(parameters.number("row_size", 8, 65536));
  options.requests = unpack_requests(parameters.text("requests"));
  options.seed = seed;
  return options;
}

}  // namespace pmsim::workloads::oltp
