#include "pmsim/workloads/parameters.hpp"

#include <utility>

#include "pmsim/core/error.hpp"

namespace pmsim::workloads {

Parameters::Parameters(std::string workload, std::map<std::string, Value> values)
    : workload_(std::move(workload)), values_(std::move(values)) {}

void Parameters::refuse(std::string_view name, std::string_view problem) const {
  throw ConfigError(workload_ + "." + std::string(name) + ": " + std::string(problem));
}

const Parameters::Value& Parameters::find(std::string_view name) {
  const auto found = values_.find(std::string(name));
  if (found == values_.end()) {
    refuse(name, "is missing");
  }
  read_.insert(found->first);
  return found->second;
}

std::int64_t Parameters::number(std::string_view name, std::int64_t minimum, std::int64_t maximum) {
  const Value& value = find(name);
  if (!std::holds_alternative<std::int64_t>(value)) {
    refuse(name, "must be a whole number");
  }
  const std::int64_t number = std::get<std::int64_t>(value);
  if (number < minimum || number > maximum) {
    refuse(name, std::to_string(number) + " must be between " + std::to_string(minimum) + " and " +
                     std::to_string(maximum));
  }
  return number;
}

std::int64_t Parameters::number_or(std::string_view name, std::int64_t otherwise, std::int64_t minimum,
                                   std::int64_t maximum) {
  return values_.contains(std::string(name)) ? number(name, minimum, maximum) : otherwise;
}

std::string Parameters::text(std::string_view name) {
  const Value& value = find(name);
  if (!std::holds_alternative<std::string>(value)) {
    refuse(name, "must be a text");
  }
  return std::get<std::string>(value);
}

std::string Parameters::choice(std::string_view name, const std::vector<std::string_view>& allowed) {
  const std::string word = text(name);
  std::string known;
  for (const std::string_view candidate : allowed) {
    if (word == candidate) {
      return word;
    }
    known += (known.empty() ? "" : ", ") + std::string(candidate);
  }
  refuse(name, "\"" + word + "\" is unknown; choose one of " + known);
}

void Parameters::require_all_read() const {
  for (const auto& [name, value] : values_) {
    if (!read_.contains(name)) {
      refuse(name, "is not a parameter of this workload");
    }
  }
}

}  // namespace pmsim::workloads
