#include "pmsim/workloads/oltp/session.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "pmsim/core/error.hpp"
#include "pmsim/workloads/oltp/steady_state.hpp"
#include "pmsim/workloads/workload.hpp"

namespace pmsim::workloads::oltp {

namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;

/// Kinds of transfers between tiers, by the names of the engines' counters.
constexpr std::array<std::string_view, 6> kTransfers{
    "dram_misses", "lines_loaded", "pages_loaded_pmem", "pages_loaded_ssd", "pages_written_ssd", "promotions"};

/// A number that may have a fraction: they come as texts.
double real(Parameters& parameters, std::string_view name, double low, double high) {
  const std::string text = parameters.text(name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= low && value <= high))
    parameters.refuse(name, "must be a number from " + std::to_string(low) + " to " + std::to_string(high));
  return value;
}

std::uint64_t bytes(Parameters& parameters, std::string_view name) {
  return static_cast<std::uint64_t>(parameters.number(name, 0, kMaxBytes));
}
bool flag(Parameters& parameters, std::string_view name) { return parameters.number(name, 0, 1) != 0; }

engines::EngineOptions engine_options(Parameters& parameters, std::uint64_t seed) {
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
  options.migration = {real(parameters, "migration_dr", 0, 1), real(parameters, "migration_dw", 0, 1),
                       real(parameters, "migration_nr", 0, 1), real(parameters, "migration_nw", 0, 1)};
  options.log_device = parameters.choice("log_device", {"pmem", "ssd"});
  options.log_algorithm = parameters.text("log_algorithm");
  options.log_layout = parameters.text("log_layout");
  options.log_bytes = bytes(parameters, "log_size");
  options.cpu_cycles = static_cast<std::uint32_t>(parameters.number("cpu_cycles", 0, 1'000'000));
  options.seed = seed;
  return options;
}

WorkloadOptions workload_options(Parameters& parameters, std::uint32_t page_bytes, std::uint64_t seed) {
  WorkloadOptions options;
  options.workload = parameters.choice("workload", {kWorkloads.begin(), kWorkloads.end()});
  options.data_bytes = bytes(parameters, "data_size");
  options.warehouses = static_cast<std::uint32_t>(parameters.number("warehouses", 0, tpcc::kMaxWarehouses));
  options.update_percent = static_cast<std::uint32_t>(parameters.number("update_percent", 0, 100));
  options.scan_length = static_cast<std::uint32_t>(parameters.number("scan_length", 0, 1 << 30));
  options.scan_hint = flag(parameters, "scan_hint");
  options.zipf = real(parameters, "zipf", 0, 100);
  options.page_bytes = page_bytes;
  options.fill = real(parameters, "fill_factor", 0.1, 1);
  options.seed = seed;
  return options;
}

}  // namespace

memory::SimOptions Session::memory_options(Parameters& parameters, const machine::PlatformParams& platform,
                                           bool& counts_wear) {
  memory::SimOptions options = capacities_of(platform);
  counts_wear = options.wear = flag(parameters, "wear");
  options.block_in_file = flag(parameters, "ssd_in_file");
  return options;
}

Session::Session(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
    : memory_(memory_options(parameters, platform, counts_wear_)),
      engine_options_(engine_options(parameters, seed)) {
  const WorkloadOptions options = workload_options(parameters, engine_options_.page_bytes, seed);
  const std::int64_t threads = parameters.number("threads", 1, 1024);
  for (std::int64_t thread = 0; thread < threads; ++thread)
    random_.emplace_back(mix64(seed) + static_cast<std::uint64_t>(thread));
  transactions_ = make_transactions<Memory>(options);
  engine_ = engines::engine_named<Memory>(engine_options_.engine).create(memory_, engine_options_);
  transactions_->load(memory_, *engine_, options.fill);
  place_ = engine_->place();
}

Session::WarmUp Session::warm_up(std::uint64_t limit) {
  memory_.detach();
  const std::uint64_t window = std::max<std::uint64_t>(1, limit / 20);
  SteadyState<kTransfers.size()> steady;
  WarmUp done;
  Counters before = engine_->counters();
  while (!done.steady && done.transactions + window <= limit) {
    for (std::uint64_t run = 0; run < window; ++run)
      transaction(static_cast<std::uint32_t>(run % threads()));
    done.transactions += window;
    Counters after = engine_->counters();
    SteadyState<kTransfers.size()>::Counts counts{};
    for (std::size_t kind = 0; kind < kTransfers.size(); ++kind) {
      const std::string name(kTransfers[kind]);
      counts[kind] = after[name] - before[name];
    }
    before = std::move(after);
    done.steady = steady.add(counts);
  }
  return done;
}

void Session::stop(bool clean) {
  memory_.detach();
  if (clean)
    engine_->shutdown(memory_);
  engine_.reset();
  memory_.lose_dram();
}

void Session::restart() {
  engine_ = engines::engine_named<Memory>(engine_options_.engine).restart(memory_, engine_options_, place_);
}

std::uint64_t Session::pmem_bytes() const {
  std::uint64_t sum = 0;
  for (const memory::RegionPlace& place : memory_.regions().places(memory::Medium::kPmem))
    sum += place.bytes;
  return sum;
}

void add_wear_facts(std::vector<std::uint32_t> line_writes, std::map<std::string, double>& facts) {
  std::ranges::sort(line_writes, std::greater{});
  double writes = 0;
  for (const std::uint32_t count : line_writes)
    writes += count;
  facts["wear_writes"] = writes;
  facts["wear_lines"] = static_cast<double>(line_writes.size());
  const auto at_rank = [&](std::uint64_t rank) {
    return line_writes.size() < rank ? 0.0 : static_cast<double>(line_writes[rank - 1]);
  };
  facts["wear_maximum"] = at_rank(1);
  for (const auto& [name, quantile] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}}) {
    const double above = (1 - quantile) * static_cast<double>(line_writes.size());
    facts[std::string("wear_") + name] = at_rank(static_cast<std::uint64_t>(std::floor(above)) + 1);
  }
  for (std::uint64_t decade = 1; decade <= 1'000'000'000; decade *= 10) {
    for (const std::uint64_t rank : {decade, 2 * decade, 5 * decade})
      facts["wear_rank_" + std::to_string(rank)] = at_rank(rank);
  }
}

}  // namespace pmsim::workloads::oltp
