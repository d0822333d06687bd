#pragma once

#include "pmsim/machine/params.hpp"

namespace pmsim::machine {

/// Whether all lanes of one pass have it alike: it decides on the state that is stepped once for all of them.
[[nodiscard]] bool lanes_share(const Field& field);

}  // namespace pmsim::machine
