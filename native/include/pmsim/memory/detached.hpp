#pragma once

#include "pmsim/memory/memory.hpp"

namespace pmsim::memory {

class Stream;

/// While it lives, what is done on the memory emits no micro-operations: checks, and set-up in between. On a
/// memory that executes instead of simulating it takes the time that it takes.
template <Memory M>
class Detached {
 public:
  explicit Detached(M& memory) : memory_(memory) {
    if constexpr (kEmits)
      stream_ = memory_.detach();
  }
  ~Detached() {
    if constexpr (kEmits)
      memory_.attach_again(stream_);
  }
  Detached(const Detached&) = delete;
  Detached& operator=(const Detached&) = delete;

 private:
  static constexpr bool kEmits = requires(M& memory) { memory.attached(); };

  M& memory_;
  Stream* stream_ = nullptr;
};

}  // namespace pmsim::memory
