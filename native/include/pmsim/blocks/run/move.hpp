#pragma once

#include "pmsim/blocks/run/publisher.hpp"

namespace pmsim::blocks::run {

/// Moves the pairs of a full buffer to the next free run of level 0 (section 4.2, "Move Node"). Durable on
/// return. Returns false, and does nothing, where level 0 is full.
template <Memory M, typename Buffer>
[[nodiscard]] bool move(M& memory, const Levels& levels, Publisher& publisher, const Buffer& buffer,
                        std::uint64_t pairs) {
  const std::uint64_t word = levels.word(memory);
  const std::uint32_t valid = Levels::valid(word, 0);
  if (valid == kRunsPerLevel)
    return false;
  ensure(pairs <= levels.capacity(0), "a buffer holds more than a run");
  const Address run = levels.run(0, valid);
  publisher.begin(memory, levels);
  publisher.claim(memory, run, pairs);
  const std::uint64_t moved = buffer.copy_to(memory, Levels::pairs_of(run));
  ensure(moved == pairs, "a buffer holds another number of pairs than was said");
  publisher.publish(memory, levels, run, pairs, Levels::with(word, 0, valid + 1));
  return true;
}

}  // namespace pmsim::blocks::run
