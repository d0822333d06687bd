#pragma once

#include <string>

#include "pmsim/crash/checker.hpp"
#include "program.hpp"

namespace pmsim::crash {

/// A violation as it was met, enough to meet it again.
struct Finding {
  std::uint64_t seed = 0;
  Scale scale = Scale::kSmall;
  CrashPoint point;
  memory::DurableImage image;
  SecondPoint second;  ///< step 0: there was no second crash
  memory::DurableImage second_image;
  bool second_recovery = false;  ///< a recovery that followed a complete one
  std::string message;
};

/// Fewest lost words that still fail, and the text for a person.
[[nodiscard]] Violation explain(const SubjectKind& kind, const CheckOptions& options, Finding finding);

}  // namespace pmsim::crash
