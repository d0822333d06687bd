#pragma once

#include <cstdint>

#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::run {

/// One branch that depends on keys just loaded, with a predictor of two bits: it follows what came out twice.
/// Of branches on random keys a processor's predictor knows no more; branches with a pattern (ends of loops,
/// the walk through a tree) are not asked for here.
class Branch {
 public:
  /// Returns `taken`; a misprediction stops the core until the key is there.
  template <memory::Memory M>
  bool operator()(M& memory, bool taken) noexcept {
    if (taken != (counter_ >= 2))
      memory.mispredict();
    counter_ = taken ? (counter_ < 3 ? counter_ + 1 : 3) : (counter_ > 0 ? counter_ - 1 : 0);
    return taken;
  }

 private:
  std::uint32_t counter_ = 1;
};

}  // namespace pmsim::blocks::run
