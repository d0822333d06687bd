#include "pmsim/workloads/oltp/session.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>

#include "pmsim/core/error.hpp"
#include "pmsim/machine/memory_mode.hpp"
#include "pmsim/workloads/oltp/options.hpp"
#include "pmsim/workloads/oltp/steady_state.hpp"
#include "pmsim/workloads/workload.hpp"

namespace pmsim::workloads::oltp {

namespace {

/// Transactions without a miss between two with one, from which on misses are few.
constexpr double kTransactionsPerMiss = 100;

/// How often to look whether DRAM is full.
constexpr std::uint64_t kRowsPerLook = 256;

/// What a transaction reads or writes for its user during one unit of Poll.
constexpr std::uint32_t kBytesPerUnit = 64;

/// Kinds of transfers between tiers, by the names of the engines' counters.
constexpr std::array<std::string_view, 7> kTransfers{
    "dram_misses",       "lines_loaded",      "pages_loaded_pmem", "pages_loaded_ssd",
    "pages_ssd_to_pmem", "pages_written_ssd", "promotions"};

}  // namespace

memory::SimOptions Session::memory_options(Parameters& parameters, const machine::PlatformParams& platform,
                                           bool& counts_wear) {
  memory::SimOptions options = capacities_of(platform);
  counts_wear = options.wear = parameters.number("wear", 0, 1) != 0;
  options.block_in_file = parameters.number("ssd_in_file", 0, 1) != 0;
  return options;
}

Session::Session(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed,
                 bool check)
    : memory_(memory_options(parameters, platform, counts_wear_)),
      engine_options_(read_engine_options(parameters, seed)) {
  engine_options_.debug_pages = engine_options_.debug_pages || check;
  const WorkloadOptions options = read_workload_options(parameters, engine_options_, seed);
  for (std::uint32_t thread = 0; thread < engine_options_.threads; ++thread)
    random_.emplace_back(mix64(seed) + thread);
  transactions_ = make_transactions<Memory>(options);
  engine_ = engines::engine_named<Memory>(engine_options_.engine).create(memory_, engine_options_);
  fill_ = options.fill;
}

void Session::require(std::uint64_t warmup, std::uint64_t timed_warmup, std::uint64_t operations) const {
  const std::uint64_t length = transactions_->length();
  if (warmup + timed_warmup + operations <= length)
    return;
  throw ConfigError("requests: " + std::to_string(length) + " are too few for a warm-up of " +
                    std::to_string(warmup) + ", " + std::to_string(timed_warmup) +
                    " more for the caches of the CPU, and " + std::to_string(operations) +
                    " measured; record at least " + std::to_string(warmup + timed_warmup + operations) +
                    " requests, or choose fewer operations or a shorter warmup");
}

std::string Session::check() {
  if (std::string broken = transactions_->check(memory_, *engine_); !broken.empty())
    return broken;
  if (const std::string broken = engine_->check(memory_); !broken.empty())
    return "engine " + engine_options_.engine + ": " + broken;
  return {};
}

void Session::load(const Watch& watch) {
  transactions_->load(memory_, *engine_, fill_, Poll(watch, Phase::kLoad));
  place_ = engine_->place();
}

Session::WarmUp Session::warm_up(std::uint64_t limit, const Watch& watch) {
  memory_.detach();
  const double filled = limit != 0 ? fill_dram(watch) : 0.0;
  const std::uint64_t window = std::max<std::uint64_t>(1, limit / 20);
  SteadyState<kTransfers.size()> steady;
  WarmUp done;
  Poll poll(watch, Phase::kWarmUp);
  poll.expect(limit);
  Counters before = engine_->counters();
  const double misses_before = before["dram_misses"];
  while (is_recorded() ? done.transactions < limit : !done.steady && done.transactions + window <= limit) {
    const std::uint64_t piece = std::min(window, limit - done.transactions);
    for (std::uint64_t run = 0; run < piece; ++run) {
      // By its bytes: one transaction may scan the whole table.
      const Outcome outcome = transaction(static_cast<std::uint32_t>((done.transactions + run) % threads()));
      poll.worked(1 + outcome.user_bytes / kBytesPerUnit);
      done.user_bytes += outcome.user_bytes;
    }
    done.transactions += piece;
    if (piece < window)
      break;
    Counters after = engine_->counters();
    const auto moved = [&](std::string_view name) {
      return after[std::string(name)] - before[std::string(name)];
    };
    SteadyState<kTransfers.size()>::Counts counts{};
    for (std::size_t kind = 0; kind < kTransfers.size(); ++kind)
      counts[kind] = moved(kTransfers[kind]);
    // Tiers that take pages and give none up are filling, and what is missed goes down until they are full.
    // Windows of a small scale have too few misses to tell that from chance.
    const bool filling =
        moved("pages_loaded_pmem") + moved("pages_loaded_ssd") + moved("pages_ssd_to_pmem") > 0 &&
        moved("evictions_dram") + moved("evictions_pmem") == 0;
    // Until half as many pages have come as DRAM began with, clock has not been round: pages that nobody wants
    // may still be there, and what is missed goes down, which chance hides in small windows. Where hardly any
    // page is missed, they are what is wanted.
    const bool settled = after["dram_misses"] - misses_before >= filled / 2 ||
                         moved("dram_misses") * kTransactionsPerMiss <= static_cast<double>(piece);
    done.steady = steady.add(counts) && !filling && settled;
    before = std::move(after);
  }
  return done;
}

double Session::fill_dram(const Watch& watch) {
  Poll poll(watch, Phase::kWarmUp);
  const auto count = [this](const char* name) { return engine_->counters()[name]; };
  const double misses = count("dram_misses");
  const double evictions = count("evictions_dram");
  std::uint64_t rows = 0;
  bool full = false;
  engine_->begin(memory_);
  for (const engines::TableId table : transactions_->tables()) {
    if (full)
      break;
    engine_->scan(memory_, table, 0, ~std::uint64_t{0}, 0, 8, engines::ScanMode::kFullPages,
                  [&](std::uint64_t, std::span<const std::byte>) {
                    poll.worked();
                    full = ++rows % kRowsPerLook == 0 && count("evictions_dram") != evictions;
                    return !full;
                  });
  }
  engine_->commit(memory_);
  return count("dram_misses") - misses;
}

void Session::stop(bool clean, const Watch& watch) {
  memory_.detach();
  if (clean) {
    if (watch)
      memory_.on_poll([watch] { watch({Phase::kWarmUp, 1}); });
    engine_->shutdown(memory_);
    memory_.on_poll({});
  }
  engine_.reset();
  memory_.lose_dram();
}

void Session::restart() {
  engine_ = engines::engine_named<Memory>(engine_options_.engine).restart(memory_, engine_options_, place_);
}

std::uint64_t Session::pmem_bytes() const {
  // Of DRAM and PMem for pages an engine takes all at once; what it has not used yet, no DRAM cache has ever
  // seen.
  return memory_.regions().capacities().one_main_memory
             ? memory_.main_memory_in_use(machine::MemoryModeCache::kPieceBytes)
             : memory_.regions().bytes_on(memory::Medium::kPmem);
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
