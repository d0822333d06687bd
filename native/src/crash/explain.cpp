#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>

#include "finding.hpp"
#include "images.hpp"
#include "narrative.hpp"

namespace pmsim::crash {

namespace {

using memory::CellBytes;
using memory::DurableImage;
using memory::SimMemory;

constexpr std::uint64_t kMostImages = 4096;  ///< looked at where lines depend on each other
constexpr std::uint64_t kMostNested = 256;
constexpr std::uint64_t kMostContents = 512;  ///< of one line

/// Words of the image that are not as `memory` has them.
std::uint64_t lost_words(const SimMemory& memory, const DurableImage& image) {
  std::uint64_t lost = 0;
  for (const CellBytes& cell : image)
    lost += lost_words_of(memory, cell).size();
  return lost;
}

/// The image without its cells that are as last stored.
DurableImage without_durable(const SimMemory& memory, DurableImage image) {
  std::erase_if(image, [&](const CellBytes& cell) { return lost_words_of(memory, cell).empty(); });
  return image;
}

/// Makes cells of the image durable, whole or in part, as long as `fails`.
DurableImage fewest_lost(const SimMemory& memory, DurableImage image,
                         const std::function<bool(const DurableImage&)>& fails) {
  const memory::DurabilityTracker& tracker = memory.durability();
  if (tracker.is_coupled()) {
    // Not every combination of lines is legal: choose among those that are.
    const auto all = tracker.enumerate(kMostImages);
    for (const DurableImage& other : all.value_or(std::vector<DurableImage>{})) {
      if (lost_words(memory, other) < lost_words(memory, image) && fails(other))
        image = other;
    }
    return without_durable(memory, std::move(image));
  }
  image = without_durable(memory, std::move(image));
  for (std::size_t cell = 0; cell < image.size();) {
    DurableImage fewer = image;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(cell));
    if (fails(fewer)) {
      image = std::move(fewer);
    } else {
      ++cell;
    }
  }
  for (CellBytes& cell : image) {
    const auto found = tracker.cell(cell.address, kMostContents);
    if (!found)
      continue;
    for (const auto& content : found->contents) {
      const CellBytes other{cell.address, content.bytes};
      if (lost_words_of(memory, other).size() >= lost_words_of(memory, cell).size())
        continue;
      const CellBytes before = std::exchange(cell, other);
      if (!fails(image))
        cell = before;
    }
  }
  return image;
}

class Explainer {
 public:
  Explainer(const SubjectKind& kind, const CheckOptions& options, Finding finding)
      : kind_(kind), options_(options), finding_(std::move(finding)), random_(options.seed) {}

  Violation explain() {
    Program program(kind_, finding_.seed, finding_.scale,
                    {.persistence = options_.persistence, .disabled = options_.disabled, .keep_log = true});
    Violation violation;
    program.run([&](Program&, const CrashPoint& point) {
      if (point.step != finding_.point.step)
        return;
      finding_.point = point;
      reduce(program.aftermath(), program.subject(), 0);
      violation = tell(program);
      program.stop_visits();
    });
    if (!met_again_ && !stopped_) {
      violation.message = finding_.message;
      violation.counterexample +=
          "  (the program did not do the same once more: does it depend on chance or time?)\n";
    }
    return violation;
  }

 private:
  /// Recoveries for a shorter explanation, for each failure: one of an engine takes up to a millisecond, and
  /// crashes of its recovery have thousands of them for each word that may be durable.
  static constexpr std::uint64_t kMostTries = 10'000;
  static constexpr std::uint64_t kPollEvery = 64;  ///< tries

  /// The image of the first failure (`failure` 0), the second ...
  [[nodiscard]] DurableImage& image_of(std::size_t failure) {
    return failure == 0 ? finding_.image : finding_.later[failure - 1].image;
  }
  [[nodiscard]] bool is_last(std::size_t failure) const { return failure == finding_.later.size(); }
  /// Whether the one after it hit a program that had gone on.
  [[nodiscard]] bool goes_on(std::size_t failure) const { return finding_.later[failure].point.operation > 0; }

  /// Makes the images of this failure and of those after it smaller.
  void reduce(Aftermath& after, const Subject& subject, std::size_t failure) {
    tries_ = 0;
    if (is_last(failure))
      met_again_ = fails(after, subject, image_of(failure), failure);
    image_of(failure) = fewest_lost(after.failed(), image_of(failure), [&](const DurableImage& image) {
      return fails(after, subject, image, failure);
    });
    if (is_last(failure))
      return;
    at_next(after, subject, failure, [&](Aftermath& again, const Subject& promise, const LaterPoint&) {
      reduce(again, promise, failure + 1);
    });
  }

  /// Whether recovery of the image fails; where further failures belong to the finding, whether it does when
  /// they come at some steps with some images, which take the place of those of the finding.
  bool fails(Aftermath& after, const Subject& subject, const DurableImage& image, std::size_t failure) {
    if (tries_ > kMostTries || stopped_)
      return false;
    if (is_last(failure)) {
      if (tries_++ % kPollEvery == 0 && options_.poll && options_.poll(0)) {
        stopped_ = true;
        return false;
      }
      after.put(image);
      const Aftermath::Outcome outcome = after.recover(subject, finding_.second_recovery);
      if (outcome.wrong.empty() || outcome.second_recovery != finding_.second_recovery)
        return false;
      finding_.message = outcome.wrong;
      return true;
    }
    bool failed = false;
    DurableImage scratch;
    after.recover_stepwise(subject, image, goes_on(failure),
                           [&](Aftermath& again, const Subject& promise, const LaterPoint& point) {
                             if (failed)
                               return;
                             for_images(again.failed().durability(), kMostNested, kMostNested, random_, scratch,
                                        [&](const DurableImage& next) {
                                          if (failed || !fails(again, promise, next, failure + 1))
                                            return;
                                          failed = true;
                                          finding_.later[failure] = {point, next};
                                        });
                           });
    return failed;
  }

  /// Calls `use` where the failure after this one comes.
  void at_next(Aftermath& after, const Subject& subject, std::size_t failure, const Aftermath::Step& use) {
    const std::uint64_t step = finding_.later[failure].point.step;
    bool used = false;
    after.recover_stepwise(subject, image_of(failure), goes_on(failure),
                           [&](Aftermath& again, const Subject& promise, const LaterPoint& point) {
                             if (point.step == step && !std::exchange(used, true))
                               use(again, promise, point);
                           });
  }

  Violation tell(Program& program) {
    const CrashPoint& point = finding_.point;
    const LaterPoint second = finding_.later.empty() ? LaterPoint{} : finding_.later.front().point;
    Violation violation{.message = finding_.message,
                        .counterexample = {},
                        .seed = finding_.seed,
                        .scale = finding_.scale,
                        .operation = point.operation,
                        .step = point.step,
                        .failures = 1 + static_cast<std::uint32_t>(finding_.later.size()),
                        .recovery_step = second.step,
                        .resumed_operation = second.operation,
                        .second_recovery = finding_.second_recovery,
                        .left = {}};
    std::string text = std::string(kind_.name) + ": " + finding_.message + "\n";
    for (const blocks::SiteInfo& site : kind_.sites) {
      if (site.id == options_.disabled)
        text += "  point " + std::to_string(site.id) + " \"" + std::string(site.name) + "\" is removed\n";
    }
    text += "  program: seed " + std::to_string(finding_.seed) +
            (finding_.scale == Scale::kSmall ? ", small" : ", large") +
            (options_.persistence == memory::Persistence::kEadr ? ", eADR\n" : ", ADR\n");
    text += operations(program.subject(), point);
    text += "  power failed at step " + std::to_string(point.step) + ", " +
            (point.acknowledged ? "after " : "during ") + operation_name(point.operation) + "\n";
    tell_failure(program.aftermath(), program.subject(), 0, point.operation, text, violation);
    text += std::string("  ") + (finding_.second_recovery ? "recovery, run a second time: " : "recovery: ") +
            finding_.message + "\n";
    if (stopped_)
      text += "  (stopped while it was made shorter)\n";
    violation.counterexample = std::move(text);
    return violation;
  }

  /// What this failure and those after it left, in words and in `violation`.
  void tell_failure(Aftermath& after, const Subject& subject, std::size_t failure, std::uint32_t operation,
                    std::string& text, Violation& violation) {
    const DurableImage& image = image_of(failure);
    text += history(after.failed(), image, operation, kind_.sites);
    text += losses(after.failed(), image);
    violation.lost_words += lost_words(after.failed(), image);
    violation.left.push_back(std::make_shared<SimMemory>(after.failed().crash(image)));
    if (is_last(failure)) {
      text += last_recovery(after, subject, image);
      return;
    }
    at_next(after, subject, failure, [&](Aftermath& again, const Subject& promise, const LaterPoint& point) {
      text += later_failure(promise, point);
      tell_failure(again, promise, failure + 1, point.operation, text, violation);
    });
  }

  /// What the recovery of the last failure did: to its end, or until it threw.
  [[nodiscard]] std::string last_recovery(Aftermath& after, const Subject& subject,
                                          const DurableImage& image) const {
    const SimMemory* recovered = nullptr;
    after.recover_stepwise(subject, image, false, [&](Aftermath& again, const Subject&, const LaterPoint&) {
      recovered = &again.failed();
    });
    return recovery(recovered, kind_.sites);
  }

  static std::string later_failure(const Subject& promise, const LaterPoint& point) {
    const std::string step = std::to_string(point.step);
    if (point.operation == 0)
      return "  recovery began, and power failed again at its step " + step + "\n";
    return "  recovery ran to its end, and the program went on:\n" +
           operations(promise, {point.step, point.operation, point.acknowledged}) +
           "  power failed again at step " + step + ", " + (point.acknowledged ? "after " : "during ") +
           operation_name(point.operation) + "\n";
  }

  const SubjectKind& kind_;
  const CheckOptions& options_;
  Finding finding_;
  std::uint64_t tries_ = 0;
  bool stopped_ = false;
  bool met_again_ = false;  ///< the same program, crashed in the same way, has failed once more
  Random random_;
};

}  // namespace

Violation explain(const SubjectKind& kind, const CheckOptions& options, Finding finding) {
  return Explainer(kind, options, std::move(finding)).explain();
}

}  // namespace pmsim::crash
