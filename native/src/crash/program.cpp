#include "program.hpp"

#include <array>
#include <string>

#include "pmsim/core/error.hpp"

namespace pmsim::crash {

using memory::Persistence;
using memory::Replica;

Program::Program(const SubjectKind& kind, std::uint64_t seed, Scale scale, Persistence persistence,
                 memory::Site disabled, bool keep_log)
    : keep_log_(keep_log),
      subject_(kind.make(seed, scale)),
      memory_({.persistence = persistence}),
      first_(memory_, Persistence::kUntracked),
      second_(memory_, persistence),
      third_(second_.memory(), Persistence::kUntracked) {
  // A mutant is a program without the point, so its recovery lacks it as well: points that only recovery
  // executes are tested by the crashes of recovery. The untracked replicas have nothing to lose.
  memory_.disable_site(disabled);
  second_.memory().disable_site(disabled);
  if (keep_log)
    memory_.keep_log();
}

void Program::visit() {
  ++point_.step;
  const std::array replicas{&first_, &second_};
  first_.sync();
  second_.sync();
  Replica::forget_changes(memory_, replicas);
  third_.sync();
  Replica::forget_changes(first_.memory(), {});
  Replica::forget_changes(second_.memory(), std::array{&third_});
  if (!visiting_)
    return;
  try {
    (*visitor_)(*this, point_);
  } catch (...) {
    failure_ = std::current_exception();
    visiting_ = false;
  }
}

void Program::run(const Visitor& visitor) {
  visitor_ = &visitor;
  memory_.on_persistence_step([this] { visit(); });
  subject_->create(memory_);
  point_.acknowledged = true;
  visit();
  for (std::uint32_t index = 0; index < subject_->operations() && visiting_; ++index) {
    point_.operation = index + 1;
    point_.acknowledged = false;
    memory_.label_operation(index + 1);
    subject_->run(memory_, index);
    point_.acknowledged = true;
    visit();
  }
  if (failure_)
    std::rethrow_exception(failure_);
}

std::string Program::attempt(const Subject& subject, memory::SimMemory& memory) {
  try {
    const std::unique_ptr<Recovered> recovered = subject.recover(memory);
    return subject.check(*recovered, memory);
  } catch (const std::exception& error) {
    return std::string("recovery threw: ") + error.what();
  }
}

Program::Outcome Program::recover_and_check(bool twice) {
  Outcome outcome;
  outcome.wrong = attempt(*subject_, first_.memory());
  if (outcome.wrong.empty() && twice) {
    const std::uint64_t before = first_.changes();
    outcome.wrong = attempt(*subject_, first_.memory());
    outcome.second_recovery = !outcome.wrong.empty();
    outcome.rewrote = first_.changes() != before;
  }
  first_.restore();
  Replica::forget_changes(first_.memory(), {});
  return outcome;
}

void Program::recover_stepwise(const memory::DurableImage& image, bool go_on,
                               const std::function<void(const SecondPoint&)>& crashed) {
  memory::SimMemory& memory = second_.memory();
  for (const memory::CellBytes& cell : image)
    second_.put(cell.address, cell.bytes);
  memory.label_operation(0);
  if (keep_log_)
    memory.keep_log();
  SecondPoint point;
  bool enough = false;
  std::exception_ptr failure;
  const auto visit_second = [&] {
    ++point.step;
    if (enough)
      return;
    third_.sync();
    try {
      crashed(point);
    } catch (...) {
      failure = std::current_exception();
      enough = true;
    }
  };
  memory.on_persistence_step(visit_second);
  std::unique_ptr<Recovered> recovered;
  try {
    recovered = subject_->recover(memory);
  } catch (const std::exception&) {
    // Recovery without a second crash has run on the first replica: its exceptions are reported from there.
  }
  if (go_on && recovered != nullptr && !enough)
    resumed_ = subject_->resume(*recovered);
  for (std::uint32_t index = 0; resumed_ != nullptr && index < resumed_->operations() && !enough; ++index) {
    point.operation = index + 1;
    point.acknowledged = false;
    memory.label_operation(index + 1);
    try {
      resumed_->run(memory, index);
    } catch (const std::exception& error) {
      failure = std::make_exception_ptr(
          SimulationError(std::string("the program that goes on after a recovery threw: ") + error.what()));
      break;
    }
    point.acknowledged = true;
    visit_second();
  }
  memory.on_persistence_step({});
  resumed_.reset();
  second_.restore();
  third_.sync_again();
  Replica::forget_changes(memory, std::array{&third_});
  if (failure)
    std::rethrow_exception(failure);
}

std::string Program::recover_again_and_check() {
  std::string wrong = attempt(resumed_ ? *resumed_ : *subject_, third_.memory());
  third_.restore();
  Replica::forget_changes(third_.memory(), {});
  return wrong;
}

std::vector<memory::Site> Program::reached() {
  std::vector<memory::Site> sites;
  for (std::uint32_t site = 1; site < 0x1'0000; ++site) {
    const auto id = static_cast<memory::Site>(site);
    if (memory_.site_uses(id) + first_.memory().site_uses(id) + second_.memory().site_uses(id) > 0)
      sites.push_back(id);
  }
  return sites;
}

}  // namespace pmsim::crash
