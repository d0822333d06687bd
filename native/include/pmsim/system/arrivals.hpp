#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/core/scatter.hpp"
#include "pmsim/core/time.hpp"
#include "pmsim/system/archive.hpp"
#include "pmsim/workloads/oltp/zipf.hpp"

namespace pmsim::system {

/// A number in [0, 1) with 53 bits.
[[nodiscard]] inline double unit(Random& random) noexcept {
  return static_cast<double>(random.next() >> 11) * 0x1.0p-53;
}

/// No request comes later than so long after the one before it (27 days): times of a run stay below 2^63 ps.
inline constexpr Picoseconds kFarthest = kNever / 4;

/// Exponentially distributed with a mean, rounded to whole picoseconds; at most `kFarthest`.
[[nodiscard]] Picoseconds exponential(Random& random, double mean);

/// When requests come: the time from each to the next. The same object serves the native driver and SimPy
/// processes, so both draw the same numbers.
///
///  - "poisson": exponential gaps with mean `interval`; also the think times of a closed pool.
///  - "paced": gaps of `interval`; 0 is for clients that do not think.
///  - "bursty": phases of exponential length with means `on` and `off` [ps]; Poisson with mean `interval` in
///  the
///    on phases, nothing in the others (an interrupted Poisson process). Begins on.
///  - "trace": at the given times, ascending.
class Arrivals {
 public:
  static constexpr Picoseconds kNoMore = -1;

  /// Throws ConfigError for an unknown kind, a missing, unknown or impossible number, or times that descend.
  Arrivals(std::string_view kind, const std::map<std::string, double>& numbers, std::vector<Picoseconds> times,
           std::uint64_t seed);

  /// Time to the next request; kNoMore: there is none, or none before `kFarthest`.
  [[nodiscard]] Picoseconds next();

  /// Whether every gap is 0: clients that do not think, but no open loop, whose time would stand still.
  [[nodiscard]] bool standing() const noexcept { return kind_ == Kind::kPaced && std::llround(interval_) == 0; }

  /// What changes from draw to draw.
  void archive(Archive& archive) {
    archive.value(next_time_);
    archive.value(left_on_);
    archive.value(random_);
  }

 private:
  enum class Kind : std::uint8_t { kPoisson, kPaced, kBursty, kTrace };

  [[nodiscard]] static Picoseconds unless_far(Picoseconds gap);
  [[nodiscard]] Picoseconds next_of_bursts();

  Kind kind_;
  double interval_ = 0;
  double on_ = 0;
  double off_ = 0;
  std::vector<Picoseconds> times_;
  std::size_t next_time_ = 0;
  Picoseconds left_on_ = 0;
  Random random_;
};

/// What requests ask for: kinds with weights, each with its choice of `first`.
class Mix {
 public:
  enum class First : std::uint8_t { kFixed, kSequence, kUniform, kZipf };
  struct Entry {
    std::uint64_t weight = 1;
    std::uint32_t kind = 0;
    First first = First::kFixed;
    std::uint64_t value = 0;  ///< kFixed: first; kSequence: where it begins; kUniform, kZipf: below this
    std::uint64_t count = 1;
    double mean = 0;  ///< positive: first is exponential with this mean instead (service times)
    double zipf = 0;  ///< kZipf: the exponent of Zipf's law
  };
  struct Draw {
    std::uint32_t kind;
    std::uint64_t first;
    std::uint64_t count;
  };

  /// Throws ConfigError without an entry, with a weight of 0, or with an exponent below 0.
  Mix(std::vector<Entry> entries, std::uint64_t seed);

  [[nodiscard]] Draw draw();

  /// What changes from draw to draw.
  void archive(Archive& archive) {
    for (Entry& entry : entries_)
      archive.value(entry.value);
    archive.value(random_);
  }

 private:
  /// Popular numbers lie anywhere, in the same places for all entries below the same number: the row that is
  /// read most is the row that is written most, whatever the seed.
  struct Popular {
    std::uint64_t below;
    double exponent;
    workloads::oltp::Zipf rank;
    Scatter place;
  };
  [[nodiscard]] std::size_t popular(std::uint64_t below, double exponent);

  std::vector<Entry> entries_;
  std::vector<Popular> popular_;
  std::vector<std::size_t> popular_of_;  ///< by entry
  std::uint64_t total_ = 0;
  Random random_;
};

}  // namespace pmsim::system
