#include "pmsim/blocks/undo/types.hpp"

#include <cstdint>
#include <string>

namespace pmsim::blocks::undo {

UndoLogFull::UndoLogFull(std::uint64_t needed, std::uint64_t free, std::uint64_t capacity)
    : ConfigError("the undo log is full: the snapshot needs " + std::to_string(needed) + " bytes, " +
                  std::to_string(free) + " of " + std::to_string(capacity) +
                  " are free; snapshot less in one transaction or create the log larger") {}

UndoLogFull::UndoLogFull(std::uint64_t actions)
    : ConfigError("the redo log is full: a transaction allocates and frees at most " + std::to_string(actions) +
                  " objects; commit earlier") {}

}  // namespace pmsim::blocks::undo
