#include "aftermath.hpp"

#include <array>
#include <exception>

#include "pmsim/core/error.hpp"

namespace pmsim::crash {

using memory::Persistence;
using memory::Replica;

namespace {

/// What is wrong, or nothing.
std::string attempt(const Subject& subject, memory::SimMemory& memory) {
  try {
    const std::unique_ptr<Recovered> recovered = subject.recover(memory);
    return subject.check(*recovered, memory);
  } catch (const std::exception& error) {
    return std::string("recovery threw: ") + error.what();
  }
}

}  // namespace

Aftermath::Aftermath(memory::SimMemory& failed, const Options& options, std::uint32_t failures)
    : failed_(failed), keep_log_(options.keep_log), whole_(failed, Persistence::kUntracked) {
  if (failures == 0)
    return;
  cut_.emplace(failed, options.persistence);
  cut_->memory().disable_site(options.disabled);
  next_ = std::make_unique<Aftermath>(cut_->memory(), options, failures - 1);
}

void Aftermath::follow() {
  whole_.sync();
  if (cut_) {
    cut_->sync();
    next_->follow();
  }
  forget();
}

/// The failed memory has been put back: all that its journal names has changed once more.
void Aftermath::follow_again() {
  whole_.sync_again();
  if (cut_has_followed_) {
    cut_->sync_again();
    next_->follow();
  }
  forget();
}

void Aftermath::forget() {
  if (cut_) {
    Replica::forget_changes(failed_, std::array{&whole_, &*cut_});
  } else {
    Replica::forget_changes(failed_, std::array{&whole_});
  }
  Replica::forget_changes(whole_.memory(), {});
  cut_has_followed_ = false;
}

void Aftermath::put(const memory::DurableImage& image) {
  for (const memory::CellBytes& cell : image)
    whole_.put(cell.address, cell.bytes);
}

Aftermath::Outcome Aftermath::recover(const Subject& subject, bool twice) {
  Outcome outcome;
  outcome.wrong = attempt(subject, whole_.memory());
  if (outcome.wrong.empty() && twice) {
    const std::uint64_t before = whole_.changes();
    outcome.wrong = attempt(subject, whole_.memory());
    outcome.second_recovery = !outcome.wrong.empty();
    outcome.rewrote = whole_.changes() != before;
  }
  whole_.restore();
  Replica::forget_changes(whole_.memory(), {});
  return outcome;
}

void Aftermath::recover_stepwise(const Subject& subject, const memory::DurableImage& image, bool go_on,
                                 const Step& step) {
  cut_->sync();
  next_->follow();
  cut_has_followed_ = true;
  memory::SimMemory& memory = cut_->memory();
  for (const memory::CellBytes& cell : image)
    cut_->put(cell.address, cell.bytes);
  memory.label_operation(0);
  if (keep_log_)
    memory.keep_log();
  LaterPoint point;
  std::unique_ptr<Subject> resumed;
  std::exception_ptr failure;
  const auto visit = [&] {
    ++point.step;
    if (failure)
      return;
    next_->whole_.sync();
    try {
      step(*next_, resumed ? *resumed : subject, point);
    } catch (...) {
      failure = std::current_exception();
    }
    if (resumed)
      resumed->step(memory);
  };
  memory.on_persistence_step(visit);
  std::unique_ptr<Recovered> recovered;
  try {
    recovered = subject.recover(memory);
  } catch (const std::exception&) {
    // Recovery to its end runs on the other replica: its exceptions are reported from there.
  }
  if (go_on && recovered != nullptr && !failure)
    resumed = subject.resume(*recovered);
  for (std::uint32_t index = 0; resumed != nullptr && index < resumed->operations() && !failure; ++index) {
    point.operation = index + 1;
    point.acknowledged = false;
    memory.label_operation(index + 1);
    try {
      resumed->run(memory, index);
    } catch (const std::exception& error) {
      failure = std::make_exception_ptr(
          SimulationError(std::string("the program that goes on after a recovery threw: ") + error.what()));
      break;
    }
    point.acknowledged = true;
    visit();
  }
  memory.on_persistence_step({});
  resumed.reset();
  cut_->restore();
  next_->follow_again();
  if (failure)
    std::rethrow_exception(failure);
}

std::uint64_t Aftermath::site_uses(memory::Site site) const {
  std::uint64_t uses = whole_.memory().site_uses(site);
  if (cut_)
    uses += cut_->memory().site_uses(site) + next_->site_uses(site);
  return uses;
}

}  // namespace pmsim::crash
