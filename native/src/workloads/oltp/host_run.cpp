#include "pmsim/workloads/oltp/host_run.hpp"

#include <ctime>
#include <memory>

#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/workloads/oltp/options.hpp"
#include "pmsim/workloads/oltp/temporary_file.hpp"

namespace pmsim::workloads::oltp {

namespace {

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double host_cpu_seconds(Parameters& parameters, std::uint64_t warmup, std::uint64_t operations,
                        std::uint64_t seed) {
  using Memory = memory::HostMemory;
  const engines::EngineOptions engine_options = read_engine_options(parameters, seed);
  if (engine_options.threads != 1)
    parameters.refuse("threads", "an engine runs natively with one thread");
  const WorkloadOptions options = read_workload_options(parameters, engine_options.page_bytes, seed);
  parameters.require_all_read();
  // Tiers, tables of pages and logs; address space only until it is used.
  const std::uint64_t extra = std::uint64_t{1} << 30;
  const std::uint64_t log = 4 * engine_options.log_bytes;
  memory::HostOptions host;
  host.capacities =
      memory::Capacities::of(2 * engine_options.dram_bytes + engine_options.pmem_bytes + extra,
                             2 * engine_options.pmem_bytes + log + extra,
                             engine_options.ssd_bytes == 0 ? 0 : 2 * engine_options.ssd_bytes + log + extra);
  const TemporaryFile ssd;
  if (engine_options.ssd_bytes != 0)
    host.block_path = ssd.path();
  Memory memory(host);
  const std::unique_ptr<Transactions<Memory>> transactions = make_transactions<Memory>(options);
  const std::unique_ptr<engines::Engine<Memory>> engine =
      engines::engine_named<Memory>(engine_options.engine).create(memory, engine_options);
  transactions->load(memory, *engine, options.fill, Poll());
  Random random(mix64(seed));
  for (std::uint64_t run = 0; run < warmup; ++run)
    transactions->transaction(memory, *engine, random);
  const double begin = cpu_seconds();
  for (std::uint64_t run = 0; run < operations; ++run)
    transactions->transaction(memory, *engine, random);
  return cpu_seconds() - begin;
}

}  // namespace pmsim::workloads::oltp
