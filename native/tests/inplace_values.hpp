#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"

namespace pmsim::blocks::inplace {

/// The bytes of a record's value.
using Value = std::vector<std::byte>;

/// A value of its own for each seed.
inline Value value_of(std::uint64_t seed, std::size_t bytes) {
  Random random(seed);
  Value value(bytes);
  for (std::byte& byte : value)
    byte = static_cast<std::byte>(random.next());
  return value;
}

}  // namespace pmsim::blocks::inplace
