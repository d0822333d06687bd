#include <pybind11/stl.h>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/machine/lanes_share.hpp"
#include "pmsim/workloads/page_costs.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

const char* name_of(machine::Quantity quantity) {
  switch (quantity) {
    case machine::Quantity::kTime:
      return "time";
    case machine::Quantity::kSize:
      return "size";
    case machine::Quantity::kFrequency:
      return "frequency";
    case machine::Quantity::kBandwidth:
      return "bandwidth";
    case machine::Quantity::kCount:
      return "count";
    case machine::Quantity::kFlag:
      return "flag";
  }
  throw SimulationError("pmsim bug: unknown quantity");
}

std::vector<py::dict> field_rows() {
  std::vector<py::dict> rows;
  for (const machine::Field& field : machine::fields()) {
    py::dict row;
    row["section"] = field.section;
    row["name"] = field.name;
    row["quantity"] = name_of(field.quantity);
    row["minimum"] = field.minimum;
    row["maximum"] = field.maximum;
    row["meaning"] = field.meaning;
    row["lanes_share"] = machine::lanes_share(field);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

machine::PlatformParams to_platform(const PlatformValues& values) {
  machine::PlatformParams params;
  std::size_t read = 0;
  for (const machine::Field& field : machine::fields()) {
    const auto section = values.find(std::string(field.section));
    const auto* found = section == values.end() ? nullptr : &section->second;
    const auto value = found == nullptr ? std::map<std::string, std::int64_t>::const_iterator{}
                                        : found->find(std::string(field.name));
    if (found == nullptr || value == found->end()) {
      throw ConfigError(std::string(field.section) + "." + std::string(field.name) + ": is missing");
    }
    field.ref(params) = value->second;
    ++read;
  }
  std::size_t given = 0;
  for (const auto& [section, entries] : values) {
    given += entries.size();
  }
  if (given != read) {
    throw ConfigError("platform: holds " + std::to_string(given - read) +
                      " unknown parameters; fields() lists the known ones");
  }
  machine::validate(params);
  return params;
}

std::vector<machine::PlatformParams> to_platforms(const std::vector<PlatformValues>& values) {
  if (values.empty()) {
    throw ConfigError("platforms: at least one is needed");
  }
  std::vector<machine::PlatformParams> platforms;
  for (const PlatformValues& value : values) {
    platforms.push_back(to_platform(value));
  }
  return platforms;
}

namespace {

/// What the hybrid of the page techniques takes from a platform, under the names that the host benchmark reads
/// [ps].
std::map<std::string, std::int64_t> page_flush_costs(const PlatformValues& values) {
  const blocks::page::CostModel costs = workloads::page_costs(to_platform(values));
  return {{"cost_stream_line", costs.stream_line}, {"cost_read_line", costs.read_line},
          {"cost_persist", costs.persist},         {"cost_repeat", costs.repeat},
          {"cost_block_write", costs.block_write}, {"cost_lines_per_block", costs.lines_per_block}};
}

}  // namespace

void bind_platform(py::module_& module) {
  module.def(
      "page_flush_costs", &page_flush_costs, py::arg("platform"),
      "Device figures by which the hybrid page technique chooses on a platform [ps], as parameters of the host "
      "benchmark \"page-flush\".");
  module.def("fields", &field_rows,
             "Every platform parameter: section, name, quantity, minimum, maximum (base units) and meaning.");
  module.def(
      "validate_platform", [](const PlatformValues& values) { static_cast<void>(to_platform(values)); },
      py::arg("values"), "Raises ConfigError where the values (base units) are incomplete or impossible.");
}

}  // namespace pmsim::bindings
