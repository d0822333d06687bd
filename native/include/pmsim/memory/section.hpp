#pragma once

#include <cstdint>

namespace pmsim::memory {

/// What an algorithm is busy with: where the time of a transaction goes.
enum class Section : std::uint8_t {
  kWork = 0,   ///< everything else
  kPages = 1,  ///< pages and lines of them move between tiers
  kLog = 2,    ///< transactions become durable
  kLocks = 3,  ///< rows are locked, for as long as the transaction lasts, and given up
};
inline constexpr int kSections = 4;

/// Until the end of the scope the thread is in `section`; afterwards where it was. Costs nothing on silicon,
/// and nothing in a simulation that has not asked for it (SimMemory::mark_sections).
template <typename M>
class InSection {
 public:
  InSection(M& memory, Section section) : memory_(memory), before_(memory.enter(section)) {}
  InSection(const InSection&) = delete;
  InSection& operator=(const InSection&) = delete;
  /// Throws what the poll of a stream throws.
  ~InSection() noexcept(false) { memory_.enter(before_); }

 private:
  M& memory_;
  Section before_;
};

}  // namespace pmsim::memory
