#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/workloads/oltp/load_table.hpp"
#include "pmsim/workloads/oltp/requests.hpp"
#include "pmsim/workloads/oltp/table_scan.hpp"
#include "pmsim/workloads/oltp/table_size.hpp"
#include "pmsim/workloads/oltp/tpcc/tpcc.hpp"
#include "pmsim/workloads/oltp/transactions.hpp"
#include "pmsim/workloads/oltp/uniform8.hpp"
#include "pmsim/workloads/oltp/ycsb.hpp"

namespace pmsim::workloads::oltp {

/// The benchmarks by the names of the parameter `workload`.
inline constexpr std::array<std::string_view, 13> kWorkloads{
    "ycsb-ro", "ycsb-rw", "ycsb-scan", "ycsb-a", "ycsb-b",     "ycsb-c",  "ycsb-d",
    "ycsb-e",  "ycsb-f",  "lookup8",   "tpcc",   "table-scan", "requests"};

struct WorkloadOptions {
  std::string workload = "ycsb-ro";
  std::uint64_t data_bytes = 0;      ///< of the loaded tree (rows_of_size); not of tpcc
  std::uint64_t rows = 0;            ///< instead; 0: as many as data_bytes are
  std::uint32_t warehouses = 1;      ///< of tpcc
  tpcc::LockOptions locks;           ///< of tpcc
  std::uint32_t update_percent = 0;  ///< of ycsb-rw
  std::uint32_t scan_length = 100;   ///< of ycsb-scan and ycsb-e, at most; 0: the whole table
  engines::ScanMode scan_mode = engines::ScanMode::kGrained;
  std::uint32_t row_cycles = 0;  ///< of table-scan
  bool whole_rows = false;       ///< of ycsb: lookups and updates are of rows instead of fields
  double zipf = 1;
  engines::EngineOptions engine;  ///< whose layout says how many rows data_bytes are
  double fill = 0.66;
  Loading loading = Loading::kBulk;  ///< not of tpcc
  std::uint32_t row_bytes = 1000;    ///< of requests and table-scan
  std::vector<Request> requests;     ///< of requests
  std::uint64_t seed = 1;
};

template <memory::Memory M>
[[nodiscard]] std::unique_ptr<Transactions<M>> make_transactions(const WorkloadOptions& options) {
  const auto rows_of = [&options](const engines::TableSpec& table) {
    return options.rows != 0 ? options.rows
                             : rows_of_size(options.data_bytes, table, options.engine, options.fill);
  };
  if (options.workload == "tpcc") {
    return std::make_unique<tpcc::Tpcc<M>>(tpcc::Cardinalities{.warehouses = options.warehouses}, options.seed,
                                           options.locks);
  }
  if (options.workload == "requests") {
    return std::make_unique<Requests<M>>(RequestsOptions{.requests = options.requests,
                                                         .rows = rows_of(requests_table(options.row_bytes)),
                                                         .row_bytes = options.row_bytes,
                                                         .scan_mode = options.scan_mode,
                                                         .loading = options.loading,
                                                         .seed = options.seed});
  }
  if (options.workload == "lookup8") {
    return std::make_unique<Uniform8<M>>(Uniform8Options{.rows = rows_of(pairs_table()),
                                                         .zipf = options.zipf,
                                                         .loading = options.loading,
                                                         .seed = options.seed});
  }
  if (options.workload == "table-scan") {
    return std::make_unique<TableScan<M>>(TableScanOptions{.rows = rows_of(scanned_table(options.row_bytes)),
                                                           .row_bytes = options.row_bytes,
                                                           .rows_at_once = options.scan_length,
                                                           .row_cycles = options.row_cycles,
                                                           .scan_mode = options.scan_mode,
                                                           .loading = options.loading,
                                                           .seed = options.seed});
  }
  YcsbOptions ycsb{.rows = rows_of(ycsb_table()),
                   .mix = {},
                   .whole_rows = options.whole_rows,
                   .zipf = options.zipf,
                   .loading = options.loading,
                   .seed = options.seed};
  if (options.workload == "ycsb-rw") {
    ycsb.mix.updates = options.update_percent;
  } else if (options.workload == "ycsb-scan") {
    ycsb.mix.scans = 100;
  } else if (options.workload != "ycsb-ro") {
    ycsb.mix = ycsb_mix(std::string_view(options.workload).substr(std::string_view("ycsb-").size()));
  }
  ycsb.full_scan = options.scan_length == 0;
  ycsb.scan_length = options.scan_length;
  ycsb.scan_mode = options.scan_mode;
  return std::make_unique<Ycsb<M>>(ycsb);
}

}  // namespace pmsim::workloads::oltp
