#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/system/arrivals.hpp"
#include "pmsim/system/recorder.hpp"
#include "pmsim/system/session.hpp"

namespace pmsim::system {

/// A tenant whose requests nobody in Python has to decide about.
struct TenantSpec {
  Arrivals arrivals;  ///< open: gaps; closed: think times
  Mix mix;
  std::uint32_t clients = 0;  ///< 0: open loop; else a closed pool of so many, each thinking first
  Picoseconds window = kSecond;
};

/// Serves tenants natively: open loops and closed pools on one session, first come, first served.
///
/// The same order of events as pmsim.des has it with its own queue, so results are identical: at one time
/// completions, each of which gives its worker to whoever waits longest; then arrivals, in the order in which
/// their timers were set, each of which takes the smallest free worker.
class Driver {
 public:
  /// One line of the event log: an acknowledged request.
  struct Served {
    std::uint32_t tenant;
    std::uint64_t request;
    std::uint32_t worker;
    Picoseconds submitted, granted, begin, end;
  };

  /// `keep_log`: every request is kept, for comparisons; without it the driver's memory is bounded. Throws
  /// ConfigError for an open loop without a gap between requests.
  Driver(Session& session, std::vector<TenantSpec> tenants, bool keep_log);

  /// Runs up to the events of `until`, without them; may be called again. `watch` is told the part of that
  /// time.
  void run(Picoseconds until, const Watch& watch);
  /// Goes on until every request has been answered: for arrivals that end, which those of open loops of a
  /// trace do. Then now() is when the last one was. `watch` is told the part of those that wait at its begin.
  void finish(const Watch& watch);

  /// Goes on until no worker is busy, without giving out work: what comes meanwhile waits. Then the driver can
  /// be moved to another session.
  void drain();
  /// The state of a drained driver, and back into one with the same tenants and a session that has just been
  /// made. A run in segments, each drained, saved and continued on a fresh session, gives the same results
  /// whether or not it was interrupted between them.
  [[nodiscard]] std::string save();
  void restore(std::string_view state);

  [[nodiscard]] Picoseconds now() const noexcept { return now_; }
  [[nodiscard]] Recorder& recorder(std::size_t tenant) { return recorders_.at(tenant); }
  [[nodiscard]] std::size_t tenants() const noexcept { return recorders_.size(); }
  [[nodiscard]] const std::vector<Served>& log() const noexcept { return log_; }
  [[nodiscard]] std::size_t waiting() const noexcept { return queue_.size(); }

 private:
  struct Timer {
    Picoseconds at = 0;
    std::uint64_t number = 0;
    std::uint32_t tenant = 0;
    /// For the heap: whether this one comes after the other.
    [[nodiscard]] bool operator>(const Timer& other) const noexcept {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  struct Waiting {
    Request request;
    std::uint32_t tenant = 0;
    Picoseconds submitted = 0;
  };
  struct Serving {
    std::uint32_t tenant = 0;
    Picoseconds submitted = 0;
    Picoseconds granted = 0;
  };

  void give_waiting();
  /// Handles what happens first, completions or timers, if it is before `until`; false: nothing is.
  bool step(Picoseconds until);
  void set_timer(std::uint32_t tenant);
  void push_timer(const Timer& timer);
  void arrive(std::uint32_t tenant);
  void complete(const Completion& completion);
  void grant(const Waiting& request);
  void archive(Archive& archive);

  Session& session_;
  std::vector<TenantSpec> tenants_;
  std::vector<Recorder> recorders_;
  bool keep_log_;
  std::vector<Timer> timers_;  ///< heap: the first on top
  std::uint64_t next_timer_ = 0;
  std::deque<Waiting> queue_;
  std::vector<Serving> serving_;     ///< by worker
  std::vector<std::uint64_t> free_;  ///< bit per worker
  std::uint32_t free_count_;
  std::uint64_t next_request_ = 0;
  std::vector<Completion> due_;
  std::vector<Served> log_;
  Picoseconds now_ = 0;
  bool draining_ = false;
};

}  // namespace pmsim::system
