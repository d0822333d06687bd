#include "pmsim/blocks/log/types.hpp"

#include <cstdint>
#include <string>

namespace pmsim::blocks::log {

LogFull::LogFull(std::uint64_t needed, std::uint64_t free, std::uint64_t capacity)
    : ConfigError("the log is full: the entry needs " + std::to_string(needed) + " bytes, " +
                  std::to_string(free) + " of " + std::to_string(capacity) +
                  " are free; truncate the log or create it larger") {}

}  // namespace pmsim::blocks::log
