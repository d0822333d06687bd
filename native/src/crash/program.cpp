#include "program.hpp"

namespace pmsim::crash {

namespace {

/// The program, recovery, the program that goes on: most mistakes of recovery need no more, some one more.
constexpr std::uint32_t kLaterFailures = 2;

}  // namespace

Program::Program(const SubjectKind& kind, std::uint64_t seed, Scale scale, const Aftermath::Options& options)
    : subject_(kind.make(seed, scale)),
      memory_({.persistence = options.persistence}),
      // A counter-example tells the steps of the last recovery, too.
      aftermath_(memory_, options, kLaterFailures + (options.keep_log ? 1 : 0)) {
  memory_.disable_site(options.disabled);
  if (options.keep_log)
    memory_.keep_log();
}

void Program::visit() {
  ++point_.step;
  aftermath_.follow();
  if (visiting_) {
    try {
      (*visitor_)(*this, point_);
    } catch (...) {
      failure_ = std::current_exception();
      visiting_ = false;
    }
  }
  subject_->step(memory_);
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

std::vector<memory::Site> Program::reached() {
  std::vector<memory::Site> sites;
  for (std::uint32_t site = 1; site < 0x1'0000; ++site) {
    const auto id = static_cast<memory::Site>(site);
    if (memory_.site_uses(id) + aftermath_.site_uses(id) > 0)
      sites.push_back(id);
  }
  return sites;
}

}  // namespace pmsim::crash
