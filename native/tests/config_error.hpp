#pragma once

#include <string>

#include "pmsim/core/error.hpp"

namespace pmsim {

/// What the ConfigError says that `action` throws.
template <typename Action>
std::string config_error(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

}  // namespace pmsim
