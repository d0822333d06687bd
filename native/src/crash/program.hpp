#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aftermath.hpp"
#include "pmsim/crash/registry.hpp"

namespace pmsim::crash {

/// Where in a program the power failed.
struct CrashPoint {
  std::uint64_t step = 0;       ///< from 1; 0: nowhere
  std::uint32_t operation = 0;  ///< 0: create(), 1: run(0), ...
  bool acknowledged = false;    ///< the operation has returned
};

/// One subject on one tracked memory, whose power can fail at every step.
class Program {
 public:
  using Visitor = std::function<void(Program&, const CrashPoint&)>;

  Program(const SubjectKind& kind, std::uint64_t seed, Scale scale, const Aftermath::Options& options);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Executes create() and the operations, and visits after every persistence step and after every
  /// acknowledgement. What the visitor throws ends the visits; it is thrown again when the program has
  /// finished, so that no exception travels through the algorithm.
  void run(const Visitor& visitor);
  /// No more visits.
  void stop_visits() noexcept { visiting_ = false; }

  [[nodiscard]] const Subject& subject() const noexcept { return *subject_; }
  /// What it is at, as a sentence begins.
  [[nodiscard]] std::string doing() const {
    return point_.operation == 0 ? "create()" : "operation " + std::to_string(point_.operation);
  }
  [[nodiscard]] std::uint64_t steps() const noexcept { return point_.step; }
  [[nodiscard]] std::vector<memory::Site> reached();

  /// What the power leaves if it fails here. Only while visiting.
  [[nodiscard]] Aftermath& aftermath() noexcept { return aftermath_; }

 private:
  void visit();

  std::unique_ptr<Subject> subject_;
  memory::SimMemory memory_;
  Aftermath aftermath_;
  CrashPoint point_;
  const Visitor* visitor_ = nullptr;
  bool visiting_ = true;
  std::exception_ptr failure_;
};

}  // namespace pmsim::crash
