#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

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
    Program program(kind_, finding_.seed, finding_.scale, options_.persistence, options_.disabled, true);
    Violation violation;
    program.run([&](Program&, const CrashPoint& point) {
      if (point.step != finding_.point.step)
        return;
      finding_.point = point;
      reduce(program);
      violation = tell(program);
      program.stop_visits();
    });
    return violation;
  }

 private:
  /// Recoveries for a shorter explanation: one of an engine takes up to a millisecond, and crashes of its
  /// recovery have thousands of them for each word that may be durable.
  static constexpr std::uint64_t kMostTries = 10'000;

  void reduce(Program& program) {
    const SimMemory& memory = program.memory();
    if (finding_.second.step == 0) {
      finding_.image = fewest_lost(memory, finding_.image, [&](const DurableImage& image) {
        if (++tries_ > kMostTries)
          return false;
        put(program, image);
        const Program::Outcome outcome = program.recover_and_check(finding_.second_recovery);
        if (outcome.wrong.empty() || outcome.second_recovery != finding_.second_recovery)
          return false;
        finding_.message = outcome.wrong;
        return true;
      });
      return;
    }
    finding_.image = fewest_lost(memory, finding_.image,
                                 [&](const DurableImage& image) { return fails_nested(program, image); });
    bool reduced = false;
    program.recover_stepwise(finding_.image, finding_.second.operation > 0, [&](const SecondPoint& point) {
      if (point.step != finding_.second.step || reduced)
        return;
      reduced = true;
      finding_.second_image =
          fewest_lost(program.recovering(), finding_.second_image, [&](const DurableImage& second) {
            if (++tries_ > kMostTries)
              return false;
            std::string wrong = again(program, second);
            if (wrong.empty())
              return false;
            finding_.message = std::move(wrong);
            return true;
          });
    });
  }

  /// Whether a crash at some step of the recovery of `image`, or of what follows it where the finding is from
  /// there, fails; remembers the first.
  bool fails_nested(Program& program, const DurableImage& image) {
    bool failed = false;
    if (tries_ > kMostTries)
      return failed;
    DurableImage scratch;
    program.recover_stepwise(image, finding_.second.operation > 0, [&](const SecondPoint& point) {
      if (failed)
        return;
      for_images(program.recovering().durability(), kMostNested, kMostNested, random_, scratch,
                 [&](const DurableImage& second) {
                   if (failed || ++tries_ > kMostTries)
                     return;
                   std::string wrong = again(program, second);
                   if (wrong.empty())
                     return;
                   failed = true;
                   finding_.second = point;
                   finding_.second_image = second;
                   finding_.message = std::move(wrong);
                 });
    });
    return failed;
  }

  static void put(Program& program, const DurableImage& image) {
    for (const CellBytes& cell : image)
      program.put(cell.address, cell.bytes);
  }
  static std::string again(Program& program, const DurableImage& image) {
    for (const CellBytes& cell : image)
      program.put_again(cell.address, cell.bytes);
    return program.recover_again_and_check();
  }

  Violation tell(Program& program) {
    const CrashPoint& point = finding_.point;
    Violation violation{finding_.message,
                        {},
                        finding_.seed,
                        finding_.scale,
                        point.operation,
                        point.step,
                        finding_.second.step,
                        finding_.second.operation,
                        lost_words(program.memory(), finding_.image)};
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
    text += history(program.memory(), finding_.image, point.operation, kind_.sites);
    text += losses(program.memory(), finding_.image);
    if (finding_.second.step > 0) {
      program.recover_stepwise(finding_.image, finding_.second.operation > 0, [&](const SecondPoint& second) {
        if (second.step != finding_.second.step)
          return;
        text += second_crash(program, second);
        text += history(program.recovering(), finding_.second_image, second.operation, kind_.sites);
        text += losses(program.recovering(), finding_.second_image);
        violation.lost_words += lost_words(program.recovering(), finding_.second_image);
      });
    }
    text += std::string("  ") + (finding_.second_recovery ? "recovery, run a second time: " : "recovery: ") +
            finding_.message + "\n";
    violation.counterexample = std::move(text);
    return violation;
  }

  static std::string second_crash(const Program& program, const SecondPoint& second) {
    const std::string step = std::to_string(second.step);
    if (second.operation == 0)
      return "  recovery began, and power failed again at its step " + step + "\n";
    return "  recovery ran to its end, and the program went on:\n" +
           operations(*program.resumed(), {second.step, second.operation, second.acknowledged}) +
           "  power failed again at step " + step + ", " + (second.acknowledged ? "after " : "during ") +
           operation_name(second.operation) + "\n";
  }

  const SubjectKind& kind_;
  const CheckOptions& options_;
  Finding finding_;
  std::uint64_t tries_ = 0;
  Random random_;
};

}  // namespace

Violation explain(const SubjectKind& kind, const CheckOptions& options, Finding finding) {
  return Explainer(kind, options, std::move(finding)).explain();
}

}  // namespace pmsim::crash
