#pragma once

#include <pmsim/prototype.hpp>

namespace odd {

using namespace pmsim::prototype;

struct OfItsOwn {};

/// Does what it is told, all of it wrong.
template <Memory M>
class Odd {
 public:
  void create(M& memory) { memory.allocate(Medium::kPmem, 64, "region"); }
  void run(M& memory, std::uint64_t operation) const {
    if (operation == 0)
      throw 5;
    memory.template store<std::uint64_t>(memory.region("region") + operation, 1);
  }
  std::uint64_t recover(M&) { return 0; }
};

template <Memory M>
struct Overloaded : Odd<M> {
  void run(M&, std::uint64_t) {}
  void run(M&, const Bytes&) {}
};
template <Memory M>
struct AllWrong : Odd<M> {
  void create(M&) noexcept {}
  void run(M&, OfItsOwn) noexcept {}
  OfItsOwn recover(M&) { return {}; }
};

}  // namespace odd
