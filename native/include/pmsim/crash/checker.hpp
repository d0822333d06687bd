#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/crash/registry.hpp"
#include "pmsim/memory/durability.hpp"

namespace pmsim::crash {

/// What the checker tries. The same options give the same states, in the same order.
struct CheckOptions {
  std::uint64_t states =
      100'000;             ///< sampled over large programs; small ones are visited up to the same number
  std::uint64_t seed = 1;  ///< of the first program and of all samples
  memory::Persistence persistence = memory::Persistence::kAdr;
  memory::Site disabled = memory::kNoSite;  ///< mutation: this point does nothing, in the run and in recovery
  std::uint32_t small_programs = 32;        ///< at most; each is visited exhaustively
  std::uint32_t large_programs = 16;        ///< share the states; more where they are too short; 0: none
  std::uint64_t images_per_step = 2048;     ///< of a small program; a step with more is sampled this often
  /// Called now and then with the states checked since the last call, with 0 while a violation is made small;
  /// true stops either.
  std::function<bool(std::uint64_t)> poll = {};
  std::uint64_t poll_every = 256;  ///< states, of all kinds, between two calls
  /// Called with the message of the violation, if any, before it is made small.
  std::function<void(const std::string&)> on_violation = {};
};

/// A durable image on which recovery did not keep the promise.
struct Violation {
  std::string message;         ///< one sentence: what check() said, or what recovery threw
  std::string counterexample;  ///< for a person: program, store history, durable words, what was found
  std::uint64_t seed = 0;
  Scale scale = Scale::kSmall;
  std::uint32_t operation = 0;  ///< in flight or last acknowledged when the power failed; 0 is create()
  std::uint64_t step = 0;       ///< persistence step of the program, from 1
  std::uint32_t failures = 1;   ///< of power
  std::uint64_t recovery_step =
      0;  ///< of the recovery that was cut short too, or of what followed it; 0: neither
  std::uint32_t resumed_operation = 0;  ///< of the program that went on after recovery; 0: it had not
  std::uint64_t lost_words = 0;         ///< words that are not as last stored
  bool second_recovery = false;         ///< one that followed a complete one, without a failure between them
  /// What each failure has left, the first one first; recovery of the last went wrong.
  std::vector<std::shared_ptr<memory::SimMemory>> left;
};

/// What was checked, and the first violation, made small.
struct CheckReport {
  std::uint64_t states = 0;             ///< durable images of the program on which recovery has run
  std::uint64_t distinct = 0;           ///< of them, different from all others of the same program
  std::uint64_t recovery_crashes = 0;   ///< images of a crash during recovery on which recovery has run again
  std::uint64_t resumed_crashes = 0;    ///< images of a crash after recovery, when the program had gone on
  std::uint64_t third_crashes = 0;      ///< images of a crash of the recovery from either, or after that
  std::uint64_t second_recoveries = 0;  ///< recoveries run once more on what the first one left
  std::uint64_t rewrites = 0;           ///< of them, those that changed bytes; allowed, but worth knowing
  std::uint64_t steps = 0;              ///< persistence steps of all programs
  std::uint64_t exhaustive_steps = 0;   ///< of them, those of which every legal image was visited
  std::uint32_t small_programs = 0;
  std::uint32_t large_programs = 0;
  double seconds = 0;
  bool stopped = false;               ///< poll said so; a violation may be longer than it needs to be
  std::vector<memory::Site> reached;  ///< persistence points that were executed, ascending
  std::optional<Violation> violation;
};

/// Crashes a block at every persistence step of many programs, and holds what recovery finds against its
/// promise (docs/crash.md says what exactly). Stops at the first violation.
[[nodiscard]] CheckReport check(const SubjectKind& kind, const CheckOptions& options);

/// What the removal of one persistence point did.
struct Mutant {
  blocks::SiteInfo site;
  bool reached = false;
  CheckReport report;
  /// Removed and noticed, or rightly declared redundant.
  [[nodiscard]] bool as_declared() const noexcept {
    return reached && report.violation.has_value() == site.redundant.empty();
  }
};

/// Removes one persistence point and checks again: there must be a violation unless the point is redundant.
[[nodiscard]] Mutant mutate(const SubjectKind& kind, const blocks::SiteInfo& site, CheckOptions options);

}  // namespace pmsim::crash
