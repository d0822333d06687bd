#include "pmsim/crash/checker.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <unordered_set>

#include "finding.hpp"
#include "images.hpp"
#include "pmsim/core/error.hpp"
#include "program.hpp"

namespace pmsim::crash {

namespace {

constexpr std::uint64_t kNestedImages = 64;    ///< of one step of a recovery: all, or ...
constexpr std::uint64_t kNestedSamples = 8;    ///< ... this many drawn
constexpr std::uint64_t kDenseSteps = 64;      ///< of a recovery: all are tried, later ones ever more rarely
constexpr std::uint64_t kResumedImages = 16;   ///< of one step of a program that goes on: all, or ...
constexpr std::uint64_t kResumedSamples = 2;   ///< ... this many drawn; ...
constexpr std::uint64_t kResumedSteps = 4;     ///< ... and of so many steps one: rather more first crashes
constexpr std::uint64_t kThirdOneIn = 8;       ///< of so many second crashes one is followed by third ones ...
constexpr std::uint64_t kThirdSteps = 4;       ///< ... at one of so many steps, with ...
constexpr std::uint64_t kThirdImages = 2;      ///< ... at most so many images
constexpr std::uint64_t kMostPrograms = 4096;  ///< of programs so short that the states are never reached
/// Of a step of a small program with too many images: a few hundred such steps share the states that are
/// wanted.
constexpr std::uint64_t kSampledSteps = 400, kFewestSamples = 16, kMostSamples = 256;
constexpr std::uint32_t kSearchPrograms = 8;  ///< looked at for a shorter counter-example
constexpr std::uint64_t kSearchStates = 2'000;

/// Thrown through the checker's own code only, never through an algorithm.
struct Found {
  Finding finding;
};
struct Stopped {};

class Search {
 public:
  Search(const SubjectKind& kind, const CheckOptions& options, Reach reach = Reach::kThirdFailure)
      : kind_(kind),
        options_(options),
        reach_(reach),
        random_(mix64(options.seed)),
        third_random_(mix64(~options.seed)) {}

  /// Every legal image of every step (drawn ones where a step has too many) of a small program, up to `until`.
  void small(std::uint64_t seed, std::optional<CrashPoint> until = std::nullopt) {
    ++report_.small_programs;
    visit(seed, Scale::kSmall, [&](Program& program, const CrashPoint& point) {
      if (until && (point.operation > until->operation ||
                    (point.operation == until->operation && point.step >= until->step))) {
        program.stop_visits();
        return;
      }
      images(program, seed, Scale::kSmall, point, options_.images_per_step,
             std::clamp(options_.states / kSampledSteps, kFewestSamples, kMostSamples));
    });
  }

  /// About `states` images, spread evenly over the steps of a large program; over drawn ones where there are
  /// more steps than that.
  void large(std::uint64_t seed, std::uint64_t states) {
    ++report_.large_programs;
    Program rehearsal(kind_, seed, Scale::kLarge, aftermath_options());
    run(rehearsal, seed, Scale::kLarge, [](Program&, const CrashPoint&) {});
    const std::uint64_t steps = rehearsal.steps();
    const std::uint64_t per_step = states / steps + 1;
    visit(seed, Scale::kLarge, [&](Program& program, const CrashPoint& point) {
      if (states >= steps || random_.below(steps) < states)
        images(program, seed, Scale::kLarge, point, per_step, per_step);
    });
  }

  [[nodiscard]] std::uint64_t states() const noexcept { return report_.states; }
  CheckReport& report() noexcept { return report_; }
  void finish() {
    report_.reached.assign(reached_.begin(), reached_.end());
    poll(true);
  }

 private:
  template <typename Visit>
  void visit(std::uint64_t seed, Scale scale, Visit visit) {
    seen_.clear();
    tried_.clear();
    Program program(kind_, seed, scale, aftermath_options());
    const auto leave = [&] {
      report_.steps += program.steps();
      for (const memory::Site site : program.reached())
        reached_.insert(site);
    };
    try {
      run(program, seed, scale, visit);
    } catch (...) {
      leave();
      throw;
    }
    leave();
  }

  /// A program that fails while the power is on is nobody's violation, and ends the check.
  void run(Program& program, std::uint64_t seed, Scale scale, const Program::Visitor& visitor) const {
    const auto refused = [&](const std::exception& why) {
      return SimulationError(std::string(kind_.name) + ", seed " + std::to_string(seed) +
                             (scale == Scale::kSmall ? ", small: " : ", large: ") + program.doing() +
                             " fails while the power is on: " + why.what());
    };
    try {
      program.run(visitor);
    } catch (const ConfigError& error) {
      throw refused(error);
    } catch (const SimulationError& error) {
      throw refused(error);
    }
  }

  [[nodiscard]] Aftermath::Options aftermath_options() const {
    return {.persistence = options_.persistence, .disabled = options_.disabled};
  }

  void images(Program& program, std::uint64_t seed, Scale scale, const CrashPoint& point, std::uint64_t most,
              std::uint64_t samples) {
    const bool all =
        for_images(program.aftermath().failed().durability(), most, samples, random_, image_,
                   [&](const memory::DurableImage& image) { one(program, {seed, scale, point, image}); });
    report_.exhaustive_steps += all ? 1 : 0;
  }

  /// A first failure.
  struct Where {
    std::uint64_t seed;
    Scale scale;
    CrashPoint point;
    const memory::DurableImage& image;
  };

  [[nodiscard]] static Found found(const Where& where, const Aftermath::Outcome& outcome,
                                   std::vector<LaterFailure> later) {
    return {{where.seed, where.scale, where.point, where.image, std::move(later), outcome.second_recovery,
             outcome.wrong}};
  }

  void one(Program& program, const Where& where) {
    Aftermath& after = program.aftermath();
    after.put(where.image);
    const std::uint64_t hash = after.image_hash();
    const bool is_new = seen_.insert(hash).second;
    // What recovery does depends on the image alone, what it may find on the promise as well: most images after
    // an acknowledgement have been possible before it, when the old state was right, too. So what is about
    // recovery is tried once for either.
    const std::uint64_t promise = 2 * std::uint64_t{where.point.operation} + (where.point.acknowledged ? 1 : 0);
    const std::uint64_t within = mix64(program.subject().promises());
    const bool is_untried = tried_.insert(mix64(hash + mix64(promise + within))).second;
    const Aftermath::Outcome outcome = after.recover(program.subject(), is_untried);
    ++report_.states;
    report_.distinct += is_new ? 1 : 0;
    report_.second_recoveries += is_untried ? 1 : 0;
    report_.rewrites += outcome.rewrote ? 1 : 0;
    if (!outcome.wrong.empty())
      throw found(where, outcome, {});
    if (is_untried)
      crash_again(after, program.subject(), where);
    poll(false);
  }

  /// Recovery is cut short, and the program that goes on after it. A recovery with many steps must not eat the
  /// time: at most as many states of each kind as of first crashes.
  void crash_again(Aftermath& after, const Subject& subject, const Where& where) {
    const bool in_recovery = report_.recovery_crashes <= report_.states;
    const bool after_it = reach_ >= Reach::kGoingOn && report_.resumed_crashes <= report_.states;
    if (!in_recovery && !after_it)
      return;
    after.recover_stepwise(
        subject, where.image, after_it, [&](Aftermath& again, const Subject& promise, const LaterPoint& point) {
          const bool resumed = point.operation > 0;
          if (resumed ? random_.below(kResumedSteps) != 0 : !in_recovery || passes(point.step))
            return;
          for_images(again.failed().durability(), resumed ? kResumedImages : kNestedImages,
                     resumed ? kResumedSamples : kNestedSamples, random_, second_image_,
                     [&](const memory::DurableImage& image) {
                       again.put(image);
                       const Aftermath::Outcome outcome = again.recover(promise, false);
                       ++(resumed ? report_.resumed_crashes : report_.recovery_crashes);
                       if (!outcome.wrong.empty())
                         throw found(where, outcome, {{point, image}});
                       if (third_is_due())
                         crash_a_third_time(again, promise, where, {point, image});
                       poll(false);
                     });
        });
  }

  /// A recovery of thousands of steps is looked at in hundreds.
  [[nodiscard]] bool passes(std::uint64_t step) {
    return step >= 2 * kDenseSteps && random_.below(step / kDenseSteps) != 0;
  }

  [[nodiscard]] bool third_is_due() {
    return reach_ == Reach::kThirdFailure && report_.third_crashes <= report_.states &&
           third_random_.below(kThirdOneIn) == 0;
  }

  /// The recovery from a second failure is cut short, and what goes on after it, but for programs that have
  /// gone on before: subjects have room to do so once. It has a random sequence of its own, so that first and
  /// second failures do not depend on it.
  void crash_a_third_time(Aftermath& after, const Subject& subject, const Where& where,
                          const LaterFailure& second) {
    const bool go_on = second.point.operation == 0;
    after.recover_stepwise(subject, second.image, go_on,
                           [&](Aftermath& again, const Subject& promise, const LaterPoint& point) {
                             if (third_random_.below(kThirdSteps) != 0)
                               return;
                             for_images(again.failed().durability(), kThirdImages, kThirdImages, third_random_,
                                        third_image_, [&](const memory::DurableImage& image) {
                                          again.put(image);
                                          const Aftermath::Outcome outcome = again.recover(promise, false);
                                          ++report_.third_crashes;
                                          if (!outcome.wrong.empty())
                                            throw found(where, outcome, {second, {point, image}});
                                        });
                           });
  }

  void poll(bool now) {
    const std::uint64_t done =
        report_.states + report_.recovery_crashes + report_.resumed_crashes + report_.third_crashes;
    if (!options_.poll || (!now && done - polled_ < options_.poll_every))
      return;
    const std::uint64_t since = done - polled_;
    polled_ = done;
    if (options_.poll(since) && !now)
      throw Stopped{};
  }

  const SubjectKind& kind_;
  const CheckOptions& options_;
  Reach reach_;
  Random random_;
  Random third_random_;
  CheckReport report_;
  std::unordered_set<std::uint64_t> seen_;   ///< images
  std::unordered_set<std::uint64_t> tried_;  ///< images, each with what was promised
  std::set<memory::Site> reached_;
  memory::DurableImage image_;
  memory::DurableImage second_image_;
  memory::DurableImage third_image_;
  std::uint64_t polled_ = 0;
};

/// Large and small programs in turns, a large one first: it takes fewer states, does more, and so meets most
/// violations sooner than a small one whose every image is visited.
void search(const SubjectKind& kind, Search& search, const CheckOptions& options) {
  const std::uint32_t small = kind.exhaustive ? options.small_programs : 0;
  const std::uint64_t large = options.large_programs == 0 ? 0 : kMostPrograms;
  const std::uint64_t share = large == 0 ? 0 : options.states / options.large_programs + 1;
  std::uint64_t in_small = 0, in_large = 0;
  for (std::uint64_t index = 0; index < std::max<std::uint64_t>(small, large); ++index) {
    const std::uint64_t before = search.states();
    if (index < large && in_large < options.states)
      search.large(options.seed + index, std::min(share, options.states - in_large));
    const std::uint64_t between = search.states();
    in_large += between - before;
    if (index < small && in_small < options.states)
      search.small(options.seed + index);
    in_small += search.states() - between;
    if (in_large >= options.states && (index >= small || in_small >= options.states))
      break;
  }
}

/// A violation of a small program that is easier to follow, where a short search meets one: best without going
/// on after recovery, or with fewer failures, then with fewer operations, or at an earlier step. Of those met
/// until `poll` says stop.
Finding shortest(const SubjectKind& kind, const CheckOptions& options, Finding finding) {
  if (!kind.exhaustive)
    return finding;
  for (const Reach reach : {Reach::kRecovery, Reach::kGoingOn, Reach::kThirdFailure}) {
    if (reach > finding.reach())
      break;
    std::uint64_t states = 0;
    for (std::uint32_t index = 0; index < kSearchPrograms && states < kSearchStates; ++index) {
      Search shorter(kind, options, reach);
      const bool longer_is_no_better = finding.scale == Scale::kSmall && finding.reach() == reach;
      try {
        shorter.small(options.seed + index, longer_is_no_better ? std::optional(finding.point) : std::nullopt);
      } catch (Found& found) {
        finding = std::move(found.finding);
      } catch (const Stopped&) {
        return finding;
      }
      states += shorter.states();
    }
  }
  return finding;
}

}  // namespace

CheckReport check(const SubjectKind& kind, const CheckOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Search run(kind, options);
  try {
    search(kind, run, options);
  } catch (const Stopped&) {
    run.report().stopped = true;
  } catch (Found& found) {
    if (options.on_violation)
      options.on_violation(found.finding.message);
    CheckOptions uncounted = options;
    bool& stopped = run.report().stopped;
    if (options.poll)
      uncounted.poll = [&](std::uint64_t) { return stopped = stopped || options.poll(0); };
    run.report().violation = explain(kind, uncounted, shortest(kind, uncounted, std::move(found.finding)));
  }
  run.finish();
  run.report().seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return std::move(run.report());
}

Mutant mutate(const SubjectKind& kind, const blocks::SiteInfo& site, CheckOptions options) {
  options.disabled = site.id;
  Mutant mutant{site, false, check(kind, options)};
  mutant.reached = std::ranges::binary_search(mutant.report.reached, site.id);
  return mutant;
}

}  // namespace pmsim::crash
