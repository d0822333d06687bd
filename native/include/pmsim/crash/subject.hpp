#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::crash {

/// What a block's recovery has found; each subject derives its own.
class Recovered {
 public:
  Recovered() = default;
  Recovered(const Recovered&) = delete;
  Recovered& operator=(const Recovered&) = delete;
  virtual ~Recovered() = default;
};

/// One block under the crash checker: a short program of operations, the block's own recovery, and its promise.
///
/// The checker calls create() once on a fresh memory, then run(0), run(1), ... and, at every persistence step
/// of these, cuts the power: it takes legal durable images, runs recover() on each and asks check(). Recovery
/// is cut short the same way. The subject keeps a plain model of what it has promised: which operations are
/// acknowledged (run() has returned, or a group has committed) and which one is in flight; recover() and
/// check() are const and may be called in the middle of run(), and of another recover().
class Subject {
 public:
  Subject() = default;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;

  /// Allocates the block's regions, always in the same order, and formats them. Part of the checked program: a
  /// crash during it may leave an unformatted block, which recover() must tell from a damaged one.
  virtual void create(memory::SimMemory& memory) = 0;

  [[nodiscard]] virtual std::uint32_t operations() const = 0;

  /// Runs operation `index` to its acknowledgement. Updates the model: in flight before its first store,
  /// acknowledged when the algorithm says so.
  virtual void run(memory::SimMemory& memory, std::uint32_t index) = 0;

  /// Runs the block's recovery on what a crash left. Every persistence step in it may be the next crash.
  [[nodiscard]] virtual std::unique_ptr<Recovered> recover(memory::SimMemory& memory) const = 0;

  /// Holds what recovery found, and what the memory now contains, against the model.
  /// Returns what is wrong, as one sentence for a person, or nothing.
  [[nodiscard]] virtual std::string check(const Recovered& recovered, memory::SimMemory& memory) const = 0;

  /// The program goes on where a complete recovery has left off: a subject whose model begins with what
  /// recovery has found, all of it acknowledged, with a few further operations. Its create() and its resume()
  /// are never called. It may take what it needs out of `recovered`. Nothing where the subject cannot go on, or
  /// had not begun.
  [[nodiscard]] virtual std::unique_ptr<Subject> resume(Recovered& /*recovered*/) const { return nullptr; }

  /// Called after each persistence step of create() and run(): here a subject lets another one of its threads
  /// go on.
  virtual void step(memory::SimMemory& /*memory*/) {}

  /// Changes where what a crash may find does so within an operation: of several transactions under way,
  /// whenever one of them is acknowledged.
  [[nodiscard]] virtual std::uint64_t promises() const { return 0; }

  /// One line for a counter-example: "append 24 bytes 'abc...'".
  [[nodiscard]] virtual std::string describe(std::uint32_t index) const = 0;

 protected:
  /// For resume(): most subjects go on as a copy of themselves.
  Subject(const Subject&) = default;
};

}  // namespace pmsim::crash
