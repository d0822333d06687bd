#include "pmsim/system/twin.hpp"

#include "pmsim/core/error.hpp"

namespace pmsim::system {

using memory::LogEntry;
using memory::OpKind;

namespace {

[[nodiscard]] bool is_barrier(const LogEntry& entry) noexcept {
  return entry.kind == OpKind::kSfence || entry.kind == OpKind::kMfence || entry.kind == OpKind::kBlockFlush;
}

}  // namespace

Twin::Twin(const memory::SimMemory& source, std::uint32_t workers)
    : lagging_(source.crash({})), in_flight_(workers) {}

void Twin::executed(std::uint32_t worker, std::span<const LogEntry> log, std::uint64_t barriers) {
  InFlight& request = in_flight_[worker];
  request.log.assign(log.begin(), log.end());
  request.barriers = barriers;
}

void Twin::ended(std::uint32_t worker) {
  for (const LogEntry& entry : in_flight_[worker].log)
    lagging_.replay(entry);
  in_flight_[worker].log.clear();
}

memory::SimMemory Twin::fail(std::span<const std::uint64_t> completed, std::span<const std::uint32_t> in_flight,
                             Random& random, std::optional<memory::Medium> lost) {
  for (const std::uint32_t worker : in_flight) {
    const InFlight& request = in_flight_[worker];
    std::uint64_t certain = completed[worker] > request.barriers ? completed[worker] - request.barriers : 0;
    for (const LogEntry& entry : request.log) {
      if (is_barrier(entry) && certain-- == 0)
        break;
      lagging_.replay(entry);
    }
  }
  memory::DurableImage image;
  // Most mistakes show where nearly all or nearly nothing has been lost; every legal image can be drawn.
  lagging_.durability().sample_corners(random, image);
  return lagging_.crash(image, lost);
}

}  // namespace pmsim::system
