#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/machine/latch_errors.hpp"
#include "pmsim/machine/requests.hpp"
#include "pmsim/memory/region.hpp"
#include "pmsim/trace/sources.hpp"
#include "pmsim/workloads/registry.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

using Media = std::array<memory::Medium, memory::kMedia>;
constexpr Media kAllMedia{memory::Medium::kDram, memory::Medium::kPmem, memory::Medium::kBlock};

py::dict info_row(const trace::TraceInfo& info) {
  py::dict by_kind;
  for (std::size_t kind = 0; kind < info.operations_by_kind.size(); ++kind) {
    by_kind[trace::name_of(static_cast<memory::OpKind>(kind))] = info.operations_by_kind[kind];
  }
  py::dict extents;
  for (const memory::Medium medium : kAllMedia) {
    extents[py::str(std::string(memory::name_of(medium)))] = info.extent_bytes[memory::index_of(medium)];
  }
  py::dict row;
  row["version"] = info.version;
  row["threads"] = info.threads();
  row["operations"] = info.operations();
  row["operations_by_kind"] = by_kind;
  row["operations_by_thread"] = info.operations_by_thread;
  row["extent_bytes"] = extents;
  row["file_bytes"] = info.file_bytes;
  row["seed"] = info.plan.seed;
  row["warmup_operations"] = info.plan.warmup_operations;
  row["untimed_operations"] = info.plan.untimed_operations;
  row["measured_operations"] = info.plan.measured_operations;
  row["pmem_footprint"] = info.plan.pmem_footprint;
  row["shares_lines"] = info.plan.shares_lines ? 1 : 0;
  row["group_of_thread"] = info.plan.group_of_thread;
  row["provenance"] = info.provenance;
  return row;
}

py::dict trace_info(const std::filesystem::path& path, bool verify) {
  trace::TraceInfo info;
  {
    const py::gil_scoped_release released;
    info = verify ? trace::verify(path) : trace::read_info(path);
  }
  return info_row(info);
}

std::vector<py::dict> to_rows(const std::vector<machine::LaneResult>& results) {
  std::vector<py::dict> rows;
  for (const machine::LaneResult& result : results) {
    rows.push_back(to_dict(result));
  }
  return rows;
}

std::vector<py::dict> trace_record(const std::filesystem::path& path, const std::string& name,
                                   const std::vector<PlatformValues>& values, const WorkloadValues& parameters,
                                   std::uint64_t seed, const std::string& provenance, const py::object& watch) {
  const std::vector<machine::PlatformParams> platforms = to_platforms(values);
  std::vector<machine::LaneResult> results;
  std::map<std::string, double> facts;
  PyWatch waiting(watch);
  {
    const py::gil_scoped_release released;
    const std::unique_ptr<workloads::Workload> workload = workloads::make_workload(
        name, workloads::Parameters(name, parameters), platforms.front(), seed, waiting.watch());
    const machine::SimulateOptions options{.length = workload->length(),
                                           .group_of_thread = workload->groups(),
                                           .seed = seed,
                                           .pmem_footprint = workload->pmem_footprint(),
                                           .batches = workload->batches(),
                                           .watch = waiting.watch()};
    trace::TraceWriter writer(
        path, workload->threads(), provenance,
        {.seed = seed,
         .warmup_operations = static_cast<std::uint64_t>(options.length.warmup_operations),
         .untimed_operations = static_cast<std::uint64_t>(options.length.untimed_operations),
         .measured_operations = static_cast<std::uint64_t>(options.length.measured_operations),
         .pmem_footprint = options.pmem_footprint,
         .shares_lines = workload->shares_lines(),
         .group_of_thread = options.group_of_thread});
    trace::RecordingSource source(*workload, writer);
    results = machine::simulate(source, workload->threads(), platforms, options);
    writer.finish();
    workload->end();
    facts = workload->facts();
  }
  std::vector<py::dict> rows = to_rows(results);
  for (py::dict& row : rows) {
    row["facts"] = facts;
  }
  return rows;
}

/// Throws ConfigError where the trace touches what the platform does not have.
void check_fits(const std::string& trace, const trace::TraceInfo& info,
                const machine::PlatformParams& platform) {
  if (info.irregular_operations != 0) {
    throw ConfigError(
        trace + ": " + std::to_string(info.irregular_operations) +
        " operations are none that a machine can run: they lie outside of their medium, leave their cache "
        "line, "
        "move no whole sectors of block, or compute for 2^32 cycles or more at once; record it with pmsim");
  }
  const memory::Capacities capacities = workloads::capacities_of(platform).capacities;
  for (const memory::Medium medium : kAllMedia) {
    const std::uint64_t needed = info.extent_bytes[memory::index_of(medium)];
    const std::uint64_t held = capacities.bytes[memory::index_of(medium)];
    if (needed > held) {
      throw ConfigError(trace + ": touches " + std::to_string(needed) + " bytes of " +
                        std::string(memory::name_of(medium)) + ", the platform has " + std::to_string(held) +
                        "; choose a larger platform or record with a smaller region_size");
    }
  }
}

/// Throws ConfigError where operations that are not timed may need a clock.
void check_untimed(const std::string& trace, const trace::TraceInfo& info) {
  using memory::OpKind;
  if (info.plan.untimed_operations == 0)
    return;
  for (const OpKind kind : {OpKind::kBlockRead, OpKind::kBlockWrite, OpKind::kBlockFlush, OpKind::kBlockGather,
                            OpKind::kBlockCommit, OpKind::kAcquire, OpKind::kRelease}) {
    if (info.operations_by_kind[static_cast<std::size_t>(kind)] != 0) {
      throw ConfigError(trace + ": its warm-up begins with operations that are not timed, which latches and " +
                        "block devices have to be; import its table with --warmup N, which times all of it");
    }
  }
}

/// Without the GIL. `in_use`: bytes of main memory, for memory mode. `listener` may be null.
std::vector<machine::LaneResult> replay(const std::filesystem::path& path,
                                        const std::vector<machine::PlatformParams>& platforms,
                                        std::uint64_t in_use, const Watch& watch,
                                        machine::RequestListener* listener) {
  trace::ReplaySource source(path);
  const trace::TraceInfo& info = source.info();
  check_untimed("trace " + path.string(), info);
  for (const machine::PlatformParams& platform : platforms) {
    check_fits("trace " + path.string(), info, platform);
  }
  const machine::SimulateOptions options{
      .length = {.warmup_operations = static_cast<std::int64_t>(info.plan.warmup_operations),
                 .measured_operations = static_cast<std::int64_t>(info.plan.measured_operations),
                 .untimed_operations = static_cast<std::int64_t>(info.plan.untimed_operations)},
      .group_of_thread = info.plan.group_of_thread,
      .seed = info.plan.seed,
      .pmem_footprint = in_use,
      // Not all traces have operations of a workload, which a run counts otherwise.
      .watch = [&](Doing doing) { watch({doing.phase, source.share_served()}); },
      .listener = listener};
  std::vector<machine::LaneResult> results;
  try {
    results = machine::simulate(source, info.threads(), platforms, options);
  } catch (const machine::StandstillError&) {
    if (info.operations_by_kind[static_cast<std::size_t>(memory::OpKind::kAcquire)] == 0)
      throw;
    throw ConfigError("trace " + path.string() +
                      ": no thread can go on: the latches that they acquire wait for each other; release each "
                      "latch before its thread acquires it again, and acquire them in one order");
  } catch (const machine::NotHeldError&) {
    throw ConfigError(
        "trace " + path.string() +
        ": a latch is released that is not held like that; release each latch once, in the mode in "
        "which it has been acquired");
  }
  source.drain();
  source.check_served();
  return results;
}

std::vector<py::dict> trace_replay(const std::filesystem::path& path, const std::vector<PlatformValues>& values,
                                   std::uint64_t in_use, const py::object& watch) {
  const std::vector<machine::PlatformParams> platforms = to_platforms(values);
  std::vector<machine::LaneResult> results;
  PyWatch waiting(watch);
  {
    const py::gil_scoped_release released;
    results = replay(path, platforms, in_use, waiting.watch(), nullptr);
  }
  return to_rows(results);
}

py::dict trace_requests(const std::filesystem::path& path, const PlatformValues& values, std::uint64_t in_use,
                        const std::string& medium, bool measured_only, const py::object& take,
                        const py::object& watch) {
  const auto named = std::find_if(kAllMedia.begin(), kAllMedia.end(), [&](memory::Medium candidate) {
    return memory::name_of(candidate) == medium;
  });
  if (named == kAllMedia.end() || *named == memory::Medium::kBlock)
    throw py::value_error("lines are of dram or pmem");
  const std::vector<machine::PlatformParams> platforms{to_platform(values)};
  std::vector<machine::LaneResult> results;
  PyWatch waiting(watch);
  {
    const py::gil_scoped_release released;
    machine::RequestsInOrder requests(
        *named, measured_only, [&take](std::span<const machine::LineRequest> piece) {
          const py::gil_scoped_acquire gil;
          take(py::bytes(reinterpret_cast<const char*>(piece.data()), piece.size_bytes()));
        });
    results = replay(path, platforms, in_use, waiting.watch(), &requests);
    requests.finish();
  }
  return to_dict(results.front());
}

}  // namespace

void bind_trace(py::module_& module) {
  module.def("trace_info", &trace_info, py::arg("path"), py::arg("verify") = false,
             "What a trace file says about itself; with verify, after reading all of it. Raises ConfigError.");
  module.def("trace_record", &trace_record, py::arg("path"), py::arg("workload"), py::arg("platforms"),
             py::arg("parameters"), py::arg("seed"), py::arg("provenance"), py::arg("watch") = py::none(),
             "As simulate(), and writes the micro-operations to a trace with `provenance`, a JSON text.");
  module.def(
      "trace_replay", &trace_replay, py::arg("path"), py::arg("platforms"), py::arg("in_use"),
      py::arg("watch") = py::none(),
      "Times a recorded trace on every platform; the dictionaries of simulate(). `in_use`: bytes of main "
      "memory that have been, of memory mode. Raises ConfigError.");
  module.def(
      "trace_requests", &trace_requests, py::arg("path"), py::arg("platform"), py::arg("in_use"),
      py::arg("medium"), py::arg("measured_only"), py::arg("take"), py::arg("watch") = py::none(),
      "As trace_replay() on one platform, and calls `take` with the lines that are asked of a medium, in "
      "the order of their arrival, piece by piece: 24 bytes each, see requests.hpp.");
}

}  // namespace pmsim::bindings
