#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "pmsim/crash/checker.hpp"
#include "pmsim/memory/replica.hpp"

namespace pmsim::crash {

/// Where in a program the power failed.
struct CrashPoint {
  std::uint64_t step = 0;       ///< from 1; 0: nowhere
  std::uint32_t operation = 0;  ///< 0: create(), 1: run(0), ...
  bool acknowledged = false;    ///< the operation has returned
};

/// Where the power failed the second time.
struct SecondPoint {
  std::uint64_t step = 0;       ///< of recovery, then of the program that goes on, from 1
  std::uint32_t operation = 0;  ///< 0: recovery; 1, ...: of the program that goes on
  bool acknowledged = false;    ///< the operation has returned
};

/// One subject on one tracked memory, with what it takes to crash it cheaply at every step.
///
///   memory (tracked) -> first   (untracked): recovery runs to its end
///                    -> second  (tracked):   recovery is cut short at each of its steps ...
///                         and so is the program that goes on after it;
///                         second -> third (untracked): recovery runs again
class Program {
 public:
  using Visitor = std::function<void(Program&, const CrashPoint&)>;

  Program(const SubjectKind& kind, std::uint64_t seed, Scale scale, memory::Persistence persistence,
          memory::Site disabled, bool keep_log = false);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Executes create() and the operations, and visits after every persistence step and after every
  /// acknowledgement. What the visitor throws ends the visits; it is thrown again when the program has
  /// finished, so that no exception travels through the algorithm.
  void run(const Visitor& visitor);
  /// No more visits.
  void stop_visits() noexcept { visiting_ = false; }

  [[nodiscard]] const Subject& subject() const noexcept { return *subject_; }
  [[nodiscard]] memory::SimMemory& memory() noexcept { return memory_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return point_.step; }
  [[nodiscard]] std::vector<memory::Site> reached();

  /// Puts the first replica into the state after the next crash. Only while visiting.
  void put(memory::Address cell, std::span<const std::byte> bytes) { first_.put(cell, bytes); }
  [[nodiscard]] std::uint64_t image_hash() const noexcept { return first_.hash(); }
  /// Runs recovery there, and again where asked; what is wrong, or nothing. Puts the replica back.
  struct Outcome {
    std::string wrong;
    bool second_recovery = false;  ///< the mistake is the second recovery's
    bool rewrote = false;          ///< the second recovery changed bytes
  };
  [[nodiscard]] Outcome recover_and_check(bool twice);

  /// Runs recovery on the image and crashes it at each step; then, if the subject can and `go_on` says so, lets
  /// the program go on and crashes that as well, at each step and after each acknowledgement.
  void recover_stepwise(const memory::DurableImage& image, bool go_on,
                        const std::function<void(const SecondPoint&)>& crashed);
  /// Inside of that: the memory of what was cut short, ...
  [[nodiscard]] const memory::SimMemory& recovering() noexcept { return second_.memory(); }
  /// ... the program that goes on, nothing while recovery runs, ...
  [[nodiscard]] const Subject* resumed() const noexcept { return resumed_.get(); }
  /// ... and what the second recovery makes of an image of it.
  void put_again(memory::Address cell, std::span<const std::byte> bytes) { third_.put(cell, bytes); }
  [[nodiscard]] std::string recover_again_and_check();

 private:
  void visit();
  [[nodiscard]] static std::string attempt(const Subject& subject, memory::SimMemory& memory);

  bool keep_log_;
  std::unique_ptr<Subject> subject_;
  std::unique_ptr<Subject> resumed_;
  memory::SimMemory memory_;
  memory::Replica first_;
  memory::Replica second_;
  memory::Replica third_;
  CrashPoint point_;
  const Visitor* visitor_ = nullptr;
  bool visiting_ = true;
  std::exception_ptr failure_;
};

}  // namespace pmsim::crash
