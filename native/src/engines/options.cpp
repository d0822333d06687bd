#include "pmsim/engines/options.hpp"

#include <string>
#include <string_view>
#include <type_traits>

#include "pmsim/core/error.hpp"

namespace pmsim::engines {
namespace {

template <typename Value>
std::string shown(const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>)
    return '"' + value + '"';
  else if constexpr (std::is_same_v<Value, bool>)
    return value ? "true" : "false";
  else
    return std::to_string(value);
}

}  // namespace

void check_restart(const EngineOptions& options, const EnginePlace& place) {
  ensure(place.made_with.has_value(), "a restart of what is no engine's place");
  const EngineOptions& made = *place.made_with;
  const auto same = [&](std::string_view name, auto EngineOptions::*option) {
    if (options.*option == made.*option)
      return;
    throw ConfigError("engine " + made.engine + ": " + std::string(name) + " = " + shown(options.*option) +
                      ": it was made with " + shown(made.*option) +
                      ", which its regions are laid out for; restart it with that, or make a new one");
  };
  same("engine", &EngineOptions::engine);
  same("dram_bytes", &EngineOptions::dram_bytes);
  same("pmem_bytes", &EngineOptions::pmem_bytes);
  same("ssd_bytes", &EngineOptions::ssd_bytes);
  same("page_bytes", &EngineOptions::page_bytes);
  same("cache_line_grained", &EngineOptions::cache_line_grained);
  same("mini_pages", &EngineOptions::mini_pages);
  same("leaf_layout", &EngineOptions::leaf_layout);
  same("admission_entries", &EngineOptions::admission_entries);
  same("log_device", &EngineOptions::log_device);
  same("log_algorithm", &EngineOptions::log_algorithm);
  same("log_layout", &EngineOptions::log_layout);
  same("log_bytes", &EngineOptions::log_bytes);
  same("logs", &EngineOptions::logs);
  same("commits", &EngineOptions::commits);
  same("log_buffer_bytes", &EngineOptions::log_buffer_bytes);
  same("threads", &EngineOptions::threads);
  same("latches", &EngineOptions::latches);
}

}  // namespace pmsim::engines
