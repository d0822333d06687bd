#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <array>

#include "bindings.hpp"
#include "latency_table.hpp"
#include "pmsim/blocks/inplace/all.hpp"
#include "pmsim/blocks/log/all.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/host_room.hpp"
#include "pmsim/workloads/registry.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

py::dict latency_row(const machine::Histogram& latency) {
  py::dict row;
  row["count"] = latency.count();
  row["mean_ps"] = latency.mean();
  row["p50_ps"] = latency.percentile(0.50);
  row["p95_ps"] = latency.percentile(0.95);
  row["p99_ps"] = latency.percentile(0.99);
  row["p999_ps"] = latency.percentile(0.999);
  row["max_ps"] = latency.maximum();
  return row;
}

}  // namespace

py::dict to_dict(const machine::LaneResult& result) {
  py::dict row;
  py::list groups;
  py::list batch_bytes;
  machine::Histogram latency;
  std::int64_t operations = 0;
  std::int64_t user_bytes = 0;
  for (const machine::GroupResult& group : result.groups) {
    py::dict entry;
    entry["operations"] = group.operations;
    entry["user_bytes"] = group.user_bytes;
    entry["elapsed_ps"] = result.elapsed;
    entry["latency"] = latency_row(group.latency);
    batch_bytes.append(group.batch_bytes);
    groups.append(entry);
    latency.merge(group.latency);
    operations += group.operations;
    user_bytes += group.user_bytes;
  }
  py::dict counters;
  result.counters.for_each([&](std::string_view name, std::int64_t value) { counters[py::str(name)] = value; });
  row["started_ps"] = result.started;
  row["elapsed_ps"] = result.elapsed;
  row["operations"] = operations;
  row["user_bytes"] = user_bytes;
  row["micro_ops"] = result.micro_ops;
  row["warmup_micro_ops"] = result.warmup_micro_ops;
  row["latency"] = latency_row(latency);
  row["counters"] = counters;
  row["groups"] = groups;
  row["batch_ends_ps"] = result.batch_ends;
  row["batch_bytes"] = batch_bytes;
  // Lists: who compares two results compares values, and an array has no truth value.
  const auto [counts, edges, sums] = latency_table(result.batch_latencies, latency.maximum());
  row["batch_latencies"] =
      py::make_tuple(counts.attr("tolist")(), edges.attr("tolist")(), sums.attr("tolist")());
  return row;
}

void check_signals() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) {
    throw py::error_already_set();
  }
}

void PyWatch::tell(Doing doing) {
  constexpr std::array kNames{"loading", "warming up", "measuring"};
  constexpr std::chrono::milliseconds kBetween{100};
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0)
    throw py::error_already_set();
  const auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return;
  next_ = now + kBetween;
  require_host_memory();  // what is not taken piece by piece: caches, streams, tables of the engines
  if (told_.is_none())
    return;
  told_(kNames[static_cast<std::size_t>(doing.phase)], doing.share);
}

namespace {

std::vector<py::dict> simulate(const std::string& name, const std::vector<PlatformValues>& values,
                               const WorkloadValues& parameters, std::uint64_t seed, const py::object& watch) {
  const std::vector<machine::PlatformParams> platforms = to_platforms(values);
  std::vector<machine::LaneResult> results;
  std::map<std::string, double> facts;
  PyWatch waiting(watch);
  {
    const py::gil_scoped_release released;
    const std::unique_ptr<workloads::Workload> workload = workloads::make_workload(
        name, workloads::Parameters(name, parameters), platforms.front(), seed, waiting.watch());
    results = machine::simulate(*workload, workload->threads(), platforms,
                                machine::SimulateOptions{.length = workload->length(),
                                                         .group_of_thread = workload->groups(),
                                                         .seed = seed,
                                                         .pmem_footprint = workload->pmem_footprint(),
                                                         .batches = workload->batches(),
                                                         .watch = waiting.watch()});
    workload->end();
    facts = workload->facts();
  }
  std::vector<py::dict> rows;
  for (const machine::LaneResult& result : results) {
    rows.push_back(bindings::to_dict(result));
    rows.back()["facts"] = facts;
  }
  return rows;
}

void check_workload(const std::string& name, const PlatformValues& values, const WorkloadValues& parameters) {
  workloads::check_workload(name, workloads::Parameters(name, parameters), to_platform(values));
}

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const workloads::WorkloadKind& kind : workloads::workload_kinds()) {
    names.emplace_back(kind.name);
  }
  return names;
}

/// Name to meaning, in the order of the list.
py::dict counter_meanings() {
  py::dict meanings;
#define PMSIM_MEANING(name, meaning) meanings[#name] = meaning;
  PMSIM_COUNTERS(PMSIM_MEANING)
#undef PMSIM_MEANING
  return meanings;
}

py::dict log_algorithms() {
  py::dict logs;
  blocks::log::AllLogNames::any([&]<typename Log>(std::size_t i) {
    logs[py::str(Log::kNames[i].name)] = py::make_tuple(Log::kNames[i].title, Log::kHasEntries);
    return false;
  });
  return logs;
}

py::dict in_place_methods() {
  py::dict methods;
  blocks::inplace::AllMethodNames::any([&]<typename Method>(std::size_t i) {
    methods[py::str(Method::kNames[i].name)] = Method::kNames[i].title;
    return false;
  });
  return methods;
}

}  // namespace

void bind_simulate(py::module_& module) {
  module.def("workloads", &workload_names, "Names of the native workloads.");
  module.def("logs", &log_algorithms,
             "The log algorithms: name to title, and whether the log knows its entries. Those that do not are "
             "of no use to storage engines and have one layout.");
  module.def("in_place_methods", &in_place_methods, "The in-place methods: name to title.");
  module.def("counters", &counter_meanings,
             "What every simulation counts: name to meaning, in the order of the results.");
  module.def("check_workload", &check_workload, py::arg("workload"), py::arg("platform"), py::arg("parameters"),
             "Makes a workload without its data and drops it. Raises what `simulate` would raise at once.");
  module.def(
      "simulate", &simulate, py::arg("workload"), py::arg("platforms"), py::arg("parameters"), py::arg("seed"),
      py::arg("watch") = py::none(),
      "Executes a workload once and times it on every platform (values in base units). One dictionary per "
      "platform: started_ps, elapsed_ps, batch_ends_ps, batch_latencies (operations of each batch by bucket, "
      "the largest latency of each bucket, and the sum of each batch's), batch_bytes (user bytes of each group "
      "in each batch), operations, user_bytes, micro_ops, "
      "warmup_micro_ops, latency, "
      "counters, groups, facts. `watch` is called now and then with what is being done (\"loading\", "
      "\"warming up\", \"measuring\") and the share of that which is done. Raises ConfigError.");
}

}  // namespace pmsim::bindings
