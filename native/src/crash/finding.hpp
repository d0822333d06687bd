#pragma once

#include <string>
#include <vector>

#include "pmsim/crash/checker.hpp"
#include "program.hpp"

namespace pmsim::crash {

/// How much of what can follow a power failure a search looks at, or a finding needs; each with all before it.
enum class Reach : std::uint8_t {
  kRecovery,      ///< recovery, cut short once
  kGoingOn,       ///< the program that goes on after a recovery, cut short
  kThirdFailure,  ///< the recovery from either, cut short
};

/// A power failure after the first one.
struct LaterFailure {
  LaterPoint point;
  memory::DurableImage image;
};

/// A violation as it was met, enough to meet it again.
struct Finding {
  std::uint64_t seed = 0;
  Scale scale = Scale::kSmall;
  CrashPoint point;
  memory::DurableImage image;
  std::vector<LaterFailure> later;
  bool second_recovery = false;  ///< a recovery that followed a complete one
  std::string message;

  [[nodiscard]] Reach reach() const noexcept {
    if (later.size() > 1)
      return Reach::kThirdFailure;
    return !later.empty() && later.front().point.operation > 0 ? Reach::kGoingOn : Reach::kRecovery;
  }
};

/// Fewest lost words that still fail, and the text for a person; the fewest known when `poll` said stop.
[[nodiscard]] Violation explain(const SubjectKind& kind, const CheckOptions& options, Finding finding);

}  // namespace pmsim::crash
