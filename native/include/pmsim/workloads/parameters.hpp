#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pmsim::workloads {

/// The named parameters of a workload, as they come from Python: whole numbers in base units, and texts.
/// A workload reads each of its parameters once; whatever it has not read by the end is a ConfigError.
class Parameters {
 public:
  using Value = std::variant<std::int64_t, std::string>;

  Parameters(std::string workload, std::map<std::string, Value> values);

  /// A number in [minimum, maximum]. Throws ConfigError where it is missing, a text, or out of range.
  [[nodiscard]] std::int64_t number(std::string_view name, std::int64_t minimum, std::int64_t maximum);
  /// The same, and `otherwise` where it is missing.
  [[nodiscard]] std::int64_t number_or(std::string_view name, std::int64_t otherwise, std::int64_t minimum,
                                       std::int64_t maximum);
  /// One of the given words.
  [[nodiscard]] std::string choice(std::string_view name, const std::vector<std::string_view>& allowed);
  [[nodiscard]] std::string text(std::string_view name);

  /// Throws ConfigError where a parameter has been given that nobody has read.
  void require_all_read() const;

  [[noreturn]] void refuse(std::string_view name, std::string_view problem) const;

 private:
  [[nodiscard]] const Value& find(std::string_view name);

  std::string workload_;
  std::map<std::string, Value> values_;
  std::set<std::string> read_;
};

}  // namespace pmsim::workloads
