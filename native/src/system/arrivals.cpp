#include "pmsim/system/arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "pmsim/core/error.hpp"

namespace pmsim::system {

namespace {

/// As of the benchmarks (workloads/oltp/options.cpp).
constexpr double kSteepest = 100;

/// On phases without a request that are drawn one by one. What comes after so many is drawn at once, or a gap
/// of a million phases would take seconds. Requests of usual bursts come long before.
constexpr int kPhasesOneByOne = 1000;

/// Beyond `kFarthest` there is no request.
Picoseconds bounded(double time) {
  // The comparison is one of doubles: llround of more than 2^63 is undefined.
  return time < static_cast<double>(kFarthest) ? static_cast<Picoseconds>(std::llround(time)) : kFarthest;
}

/// The sum of `count` exponential times with a mean of 1, without drawing each (Marsaglia and Tsang, "A simple
/// method for generating gamma variables", ACM TOMS 2000).
double sum_of_exponentials(Random& random, double count) {
  if (count < 1)
    return 0;
  const double d = count - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    // Box and Muller; 1 - unit() is not 0.
    const double radius = std::sqrt(-2 * std::log1p(-unit(random)));
    const double normal = radius * std::cos(2 * std::numbers::pi * unit(random));
    const double root = 1 + c * normal;
    if (root <= 0)
      continue;
    const double v = root * root * root;
    if (std::log1p(-unit(random)) < normal * normal / 2 + d - d * v + d * std::log(v))
      return d * v;
  }
}

}  // namespace

Picoseconds exponential(Random& random, double mean) { return bounded(-std::log1p(-unit(random)) * mean); }

Arrivals::Arrivals(std::string_view kind, const std::map<std::string, double>& numbers,
                   std::vector<Picoseconds> times, std::uint64_t seed)
    : times_(std::move(times)), random_(seed) {
  std::set<std::string> known;
  const auto number = [&](const std::string& name, double least = 1) {
    known.insert(name);
    const auto found = numbers.find(name);
    if (found == numbers.end() || !(found->second >= least) || found->second > 1e18)
      throw ConfigError("arrivals." + name + ": must be a time of 1 to 1e18 ps");
    return found->second;
  };
  if (kind == "poisson") {
    kind_ = Kind::kPoisson;
    interval_ = number("interval");
  } else if (kind == "paced") {
    kind_ = Kind::kPaced;
    interval_ = number("interval", 0);
  } else if (kind == "bursty") {
    kind_ = Kind::kBursty;
    interval_ = number("interval");
    on_ = number("on");
    off_ = number("off");
    left_on_ = exponential(random_, on_);
  } else if (kind == "trace") {
    kind_ = Kind::kTrace;
    if (!std::ranges::is_sorted(times_) || (!times_.empty() && times_.front() < 0))
      throw ConfigError("arrivals.times: must ascend from 0 on");
  } else {
    throw ConfigError("arrivals: \"" + std::string(kind) +
                      "\" is unknown; choose poisson, paced, bursty or trace");
  }
  for (const auto& [name, value] : numbers) {
    if (!known.contains(name))
      throw ConfigError("arrivals." + name + ": is no parameter of \"" + std::string(kind) + "\"");
  }
}

Picoseconds Arrivals::next() {
  switch (kind_) {
    case Kind::kPoisson:
      return unless_far(exponential(random_, interval_));
    case Kind::kPaced:
      return unless_far(bounded(interval_));
    case Kind::kTrace: {
      if (next_time_ == times_.size())
        return kNoMore;
      const Picoseconds before = next_time_ == 0 ? 0 : times_[next_time_ - 1];
      return times_[next_time_++] - before;
    }
    default:
      return unless_far(next_of_bursts());
  }
}

Picoseconds Arrivals::unless_far(Picoseconds gap) { return gap < kFarthest ? gap : kNoMore; }

Picoseconds Arrivals::next_of_bursts() {
  Picoseconds waited = 0;
  for (int phase = 0; phase < kPhasesOneByOne; ++phase) {
    const Picoseconds gap = exponential(random_, interval_);
    if (gap <= left_on_) {
      left_on_ -= gap;
      return waited + gap;
    }
    // Memoryless: what is left of the gap is drawn anew in the next on phase.
    waited += left_on_ + exponential(random_, off_);
    left_on_ = exponential(random_, on_);
    if (waited >= kFarthest)  // of terms that are none above it: the sum cannot have overflowed
      return kFarthest;
  }
  // Each on phase has a request before its end with one probability, so the number of those without is
  // geometric. Until its request or its end, a phase lasts as long as the shorter of two exponential times,
  // which is one of their added rates, whichever comes first; after the request the phase has its whole length
  // before it again.
  const double until_either = 1 / (1 / on_ + 1 / interval_);
  const double empty = std::floor(std::log1p(-unit(random_)) / std::log1p(-on_ / (on_ + interval_)));
  const double longer =
      sum_of_exponentials(random_, empty + 1) * until_either + sum_of_exponentials(random_, empty) * off_;
  left_on_ = exponential(random_, on_);
  return bounded(static_cast<double>(waited) + longer);
}

Mix::Mix(std::vector<Entry> entries, std::uint64_t seed) : entries_(std::move(entries)), random_(seed) {
  if (entries_.empty())
    throw ConfigError("mix: needs at least one kind of request");
  for (const Entry& entry : entries_) {
    if (entry.weight == 0)
      throw ConfigError("mix: a weight of 0; leave the request out");
    const bool skewed = entry.first == First::kZipf;
    if ((entry.first == First::kUniform || skewed) && entry.value == 0)
      throw ConfigError("mix: a choice below 0");
    if (skewed && !(entry.zipf >= 0 && entry.zipf <= kSteepest))
      throw ConfigError("mix: an exponent of Zipf's law outside of 0 to 100");
    popular_of_.push_back(skewed ? popular(entry.value, entry.zipf) : 0);
    total_ += entry.weight;
  }
}

std::size_t Mix::popular(std::uint64_t below, double exponent) {
  for (std::size_t index = 0; index < popular_.size(); ++index) {
    if (popular_[index].below == below && popular_[index].exponent == exponent)
      return index;
  }
  popular_.push_back({below, exponent, workloads::oltp::Zipf(below, exponent), Scatter(below)});
  return popular_.size() - 1;
}

Mix::Draw Mix::draw() {
  std::size_t chosen = 0;
  if (entries_.size() > 1) {
    std::uint64_t dice = random_.below(total_);
    while (dice >= entries_[chosen].weight)
      dice -= entries_[chosen++].weight;
  }
  Entry& entry = entries_[chosen];
  std::uint64_t first = entry.value;
  if (entry.mean > 0) {
    first = static_cast<std::uint64_t>(exponential(random_, entry.mean));
  } else if (entry.first == First::kUniform) {
    first = random_.below(entry.value);
  } else if (entry.first == First::kZipf) {
    const Popular& popular = popular_[popular_of_[chosen]];
    first = popular.place(popular.rank(random_));
  } else if (entry.first == First::kSequence) {
    entry.value += entry.count;
  }
  return {entry.kind, first, entry.count};
}

}  // namespace pmsim::system
