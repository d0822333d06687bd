#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// What begins or ends when the slots of the window before one have retired.
struct Mark {
  static constexpr std::uint64_t kNoSlot = ~std::uint64_t{0};
  // In place of the begin of an operation that ends:
  static constexpr Picoseconds kSectionBegins = -1;
  static constexpr Picoseconds kOperationBegins = -2;
  static constexpr Picoseconds kBegunThere = -3;  ///< it ends, and has begun when its kOperationBegins retired
  static constexpr Picoseconds kNoOperation = -4;

  std::uint64_t slot = kNoSlot;
  Picoseconds begin = 0;
  std::uint64_t fences = 0;  ///< that the thread had dispatched, the last of which an end waits for; 0: for
                             ///< none. Of a section: its number
};

/// Those in the window, in program order: a ring.
///
/// Invariant: what is in no use has no slot.
class Marks {
 public:
  /// `places`: a power of two, at least the slots of the window.
  explicit Marks(std::size_t places) : ring_(places), mask_(places - 1) {}

  void push(const Mark& mark) noexcept { ring_[tail_++ & mask_] = mark; }
  /// The oldest, or one without a slot.
  [[nodiscard]] const Mark& front() const noexcept { return ring_[head_ & mask_]; }
  void pop() noexcept { ring_[head_++ & mask_].slot = Mark::kNoSlot; }

 private:
  std::vector<Mark> ring_;
  std::uint64_t mask_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace pmsim::machine
