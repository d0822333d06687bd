#include "pmsim/system/arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "pmsim/core/error.hpp"

namespace pmsim::system {

namespace {

/// As of the benchmarks (workloads/oltp/options.cpp).
constexpr double kSteepest = 100;

}  // namespace

Picoseconds exponential(Random& random, double mean) {
  return static_cast<Picoseconds>(std::llround(-std::log1p(-unit(random)) * mean));
}

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
      return exponential(random_, interval_);
    case Kind::kPaced:
      return static_cast<Picoseconds>(std::llround(interval_));
    case Kind::kTrace: {
      if (next_time_ == times_.size())
        return kNoMore;
      const Picoseconds before = next_time_ == 0 ? 0 : times_[next_time_ - 1];
      return times_[next_time_++] - before;
    }
    default: {
      Picoseconds waited = 0;
      for (;;) {
        const Picoseconds gap = exponential(random_, interval_);
        if (gap <= left_on_) {
          left_on_ -= gap;
          return waited + gap;
        }
        // Memoryless: what is left of the gap is drawn anew in the next on phase.
        waited += left_on_ + exponential(random_, off_);
        left_on_ = exponential(random_, on_);
      }
    }
  }
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
