#include "pmsim/machine/simulate.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "pmsim/core/error.hpp"
#include "pmsim/machine/hierarchy.hpp"
#include "pmsim/machine/lane.hpp"
#include "pmsim/machine/lanes_share.hpp"
#include "pmsim/machine/shared_feed.hpp"

namespace pmsim::machine {

namespace {

void require_same_hierarchy(std::span<const PlatformParams> platforms) {
  for (const Field& field : fields()) {
    if (!lanes_share(field)) {
      continue;
    }
    auto first = platforms.front();
    for (PlatformParams other : platforms) {
      if (field.ref(first) != field.ref(other)) {
        throw ConfigError(std::string(field.section) + "." + std::string(field.name) +
                          ": lanes of one pass must agree on it; run these platforms one by one");
      }
    }
  }
}

/// Lanes take turns: long ones leave the host's caches to a lane and its tags, short ones keep the log between
/// lanes short (16 bytes each).
constexpr std::int64_t kTimedOpsPerSlice = 1 << 18;

std::size_t group_of(std::size_t thread, const SimulateOptions& options) {
  return options.group_of_thread.empty() ? 0 : options.group_of_thread[thread];
}
std::size_t groups_of(const SimulateOptions& options) {
  return options.group_of_thread.empty() ? 1 : std::ranges::max(options.group_of_thread) + std::size_t{1};
}

/// One lane between the start of its measurement and its end.
struct Measurement {
  std::unique_ptr<Lane> lane;
  RequestListener* listener = nullptr;
  bool measuring = false;
  bool done = false;
  Picoseconds started = 0;
  Counters counters_before;
  Counters hierarchy_before;
  Counters hierarchy_after;
  std::int64_t micro_ops_before = 0;
  std::int64_t micro_ops_after = 0;
  std::vector<std::int64_t> operations_before;
  std::vector<std::int64_t> bytes_before;
  std::vector<Picoseconds> batch_ends;
  Histogram latency;                                   ///< up to the end of the last batch
  std::vector<std::int64_t> bytes_seen;                ///< of each thread, up to there
  std::vector<std::vector<std::int64_t>> batch_bytes;  ///< of each group
  std::vector<Histogram> batch_latencies;

  /// Operations to run before it has to be looked at again.
  [[nodiscard]] std::int64_t goal(const RunLength& length, std::uint32_t batches) const {
    if (!measuring)
      return length.warmup_operations;
    const auto batch = static_cast<std::int64_t>(batch_ends.size()) + 1;
    return length.warmup_operations + length.measured_operations * batch / batches;
  }

  void start(const SharedFeed& feed, const Hierarchy& hierarchy) {
    measuring = true;
    started = lane->now();
    if (listener != nullptr)
      listener->measurement_begins(started);
    counters_before = lane->counters();
    hierarchy_before = hierarchy.counters();
    micro_ops_before = feed.micro_ops();
    for (VirtualThread& thread : lane->threads()) {
      thread.clear_latency();
      operations_before.push_back(thread.operations());
      bytes_before.push_back(thread.user_bytes());
    }
    bytes_seen = bytes_before;
  }

  void end_batch(const SimulateOptions& options) {
    batch_ends.push_back(lane->now() - started);
    Histogram all;
    for (const VirtualThread& thread : lane->threads())
      all.merge(thread.latency());
    batch_latencies.push_back(all.since(latency));
    latency = all;
    batch_bytes.resize(groups_of(options));
    for (std::vector<std::int64_t>& bytes : batch_bytes)
      bytes.push_back(0);
    for (std::size_t thread = 0; thread < bytes_seen.size(); ++thread) {
      const std::int64_t bytes = lane->threads()[thread].user_bytes();
      batch_bytes[group_of(thread, options)].back() += bytes - std::exchange(bytes_seen[thread], bytes);
    }
  }

  void stop(const SharedFeed& feed, const Hierarchy& hierarchy) {
    done = true;
    hierarchy_after = hierarchy.counters();
    micro_ops_after = feed.micro_ops();
  }

  [[nodiscard]] LaneResult result(const SimulateOptions& options) const {
    LaneResult result;
    Picoseconds ended = lane->now();
    if (lane->finished()) {
      for (const VirtualThread& thread : lane->threads()) {
        ended = std::max(ended, thread.ended_at());
      }
    }
    result.started = started;
    result.elapsed = ended - started;
    result.batch_ends = batch_ends;
    result.batch_latencies = batch_latencies;
    result.micro_ops = micro_ops_after - micro_ops_before;
    result.warmup_micro_ops = micro_ops_before;
    const Counters timing = lane->counters().since(counters_before);
    const Counters tags = hierarchy_after.since(hierarchy_before);
    result.counters = timing.plus(tags);
    result.groups.resize(groups_of(options));
    const std::vector<VirtualThread>& threads = lane->threads();
    for (std::size_t thread = 0; thread < threads.size(); ++thread) {
      GroupResult& group = result.groups[group_of(thread, options)];
      group.operations += threads[thread].operations() - operations_before[thread];
      group.user_bytes += threads[thread].user_bytes() - bytes_before[thread];
      group.latency.merge(threads[thread].latency());
    }
    for (std::size_t group = 0; group < batch_bytes.size(); ++group)
      result.groups[group].batch_bytes = batch_bytes[group];
    return result;
  }
};

/// Of the operations to run, by the lane that is last.
double share_done(std::span<const Measurement> lanes, const RunLength& length) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Measurement& measured : lanes) {
    if (!measured.done)
      least = std::min(least, measured.lane ? measured.lane->operations() : 0);
  }
  const std::int64_t total = length.warmup_operations + length.measured_operations;
  return std::min(1.0, static_cast<double>(least) / static_cast<double>(std::max<std::int64_t>(1, total)));
}

}  // namespace

bool lanes_share(const Field& field) {
  const bool section = field.section == "tlb" || field.section == "l1" || field.section == "l2" ||
                       field.section == "llc" || field.section == "prefetcher";
  return (section && field.quantity != Quantity::kTime) || field.name == "cores" || field.name == "eadr" ||
         field.name == "flush_keeps_line";
}

std::vector<LaneResult> simulate(memory::Source& source, std::uint32_t threads,
                                 std::span<const PlatformParams> platforms, const SimulateOptions& options) {
  ensure(!platforms.empty() && threads > 0, "simulate() without a platform or a thread");
  ensure(options.batches > 0, "simulate() with no batch");
  ensure(options.listener == nullptr || platforms.size() == 1, "simulate() listens to one platform");
  for (const PlatformParams& platform : platforms) {
    validate(platform);
    const std::int64_t hardware_threads = platform.core.cores * platform.core.threads_per_core;
    if (static_cast<std::int64_t>(threads) > hardware_threads) {
      throw ConfigError("threads = " + std::to_string(threads) + ": the platform has " +
                        std::to_string(hardware_threads) +
                        " hardware threads (core.cores x core.threads_per_core)");
    }
  }
  require_same_hierarchy(platforms);
  Hierarchy hierarchy(platforms.front(), threads, source.shares_lines());
  std::vector<Measurement> lanes(platforms.size());
  RunLength length = options.length;
  const auto poll = [&] {
    if (options.watch)
      options.watch({Phase::kMeasure, share_done(lanes, length)});
  };
  SharedFeed feed(source, hierarchy, threads, platforms.size(), poll);
  for (std::size_t index = 0; index < platforms.size(); ++index) {
    lanes[index].lane = std::make_unique<Lane>(platforms[index], threads, feed.lane(index), options.seed,
                                               options.pmem_footprint, source.shares_lines());
  }
  const std::int64_t untimed = std::min(length.untimed_operations, length.warmup_operations);
  const std::int64_t executed = feed.execute_untimed(untimed, [&](std::span<const TimedOp> ops) {
    for (Measurement& measured : lanes)
      measured.lane->execute_untimed(ops);
  });
  length.warmup_operations -= std::min(executed, length.warmup_operations);
  for (Measurement& measured : lanes) {
    if (options.listener != nullptr) {
      measured.listener = options.listener;
      measured.lane->listen(*options.listener);
    }
    if (length.warmup_operations == 0) {
      measured.start(feed, hierarchy);
    }
  }
  for (bool running = true; running;) {
    running = false;
    for (Measurement& measured : lanes) {
      if (measured.done) {
        continue;
      }
      const std::int64_t goal = measured.goal(length, options.batches);
      const bool more = measured.lane->run(goal, kTimedOpsPerSlice);
      if (!more && !measured.measuring && measured.lane->operations() >= goal) {
        measured.start(feed, hierarchy);
      } else if (!more) {
        if (!measured.measuring) {
          measured.start(feed, hierarchy);
        }
        const bool reached = measured.lane->operations() >= goal;
        if (reached) {
          measured.end_batch(options);
        }
        if (!reached || measured.batch_ends.size() == options.batches) {
          measured.stop(feed, hierarchy);
        }
      }
      running = running || !measured.done;
    }
    poll();
  }
  std::vector<LaneResult> results;
  for (const Measurement& measured : lanes) {
    results.push_back(measured.result(options));
  }
  return results;
}

}  // namespace pmsim::machine
