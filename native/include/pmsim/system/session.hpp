#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/core/time.hpp"
#include "pmsim/machine/counters.hpp"
#include "pmsim/machine/hierarchy.hpp"
#include "pmsim/machine/lane.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/system/arrivals.hpp"
#include "pmsim/system/service.hpp"

namespace pmsim::system {

class Twin;

/// A request that has ended.
struct Completion {
  Picoseconds time;       ///< it is acknowledged: everything it did has retired
  std::uint32_t worker;   ///< which is free again from then on
  std::uint64_t request;  ///< its id
  Picoseconds begin;      ///< when the worker's core began with it
  std::uint64_t result;   ///< of Service::execute
};

/// A service on a machine with worker threads that sleep until they are given a request: the native core as a
/// server in somebody else's simulation.
///
/// The caller owns time. It advances the session to its next event and no further, so neither guesses:
///
///     for each event of the caller, at time t:
///       advance(t) until it says that nothing is due before t; each completion is an event at its own time
///       handle the event; submit() at t
///
/// Order at one time t: completions, by worker; then the caller's own events; then what the machine does at t
/// (so work given out at t begins at t). A completion is never later known than it is due; one that only an
/// action at its own time has made known (a computation that ends) follows that action, before any other.
///
/// Exactness: a worker that is given its next request at the time of its last completion does, to the
/// picosecond, what a closed loop inside the core does whose operations wait for what is before them.
class Session {
 public:
  /// `service` must have room for `workers`. Throws ConfigError where the machine has fewer hardware threads.
  Session(std::unique_ptr<Service> service, const machine::PlatformParams& platform, std::uint32_t workers,
          std::uint64_t seed);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Called now and then by advance() where it takes long; may throw, after which the session is of no use any
  /// more.
  void on_poll(std::function<void()> poll) { poll_ = std::move(poll); }

  /// Requests of a shared service are acknowledged in the order of their execution (Service::shared()), as they
  /// are where the power can fail. Before anything is submitted.
  void acknowledge_in_order() noexcept { in_order_ = true; }

  /// Executes requests of a mix, in turn by each worker, in no time: data, TLBs and caches are where they leave
  /// them, and what they have stored has become durable since. Nothing of it is counted. Before anything is
  /// submitted.
  void warm_up(Mix mix, std::uint64_t requests, const Watch& watch);

  /// Gives a request to a worker that is free, at a time not before what has been acted.
  void submit(std::uint32_t worker, const Request& request, Picoseconds at);

  /// Acts strictly before `before`, and stops at the first completion. Returns the time of the first completion
  /// if it is not after `before`, else kNever.
  Picoseconds advance(Picoseconds before);
  /// Takes what is due at the time that advance() returned, in order.
  void take_due(std::vector<Completion>& into);
  /// When the session next has something to do or to report; kNever: nothing until a request comes.
  [[nodiscard]] Picoseconds next() const noexcept;

  [[nodiscard]] bool idle(std::uint32_t worker) const { return !workers_[worker].busy; }
  [[nodiscard]] std::uint32_t workers() const noexcept { return static_cast<std::uint32_t>(workers_.size()); }
  [[nodiscard]] Service& service() noexcept { return *service_; }

  /// Counters of the machine up to `time`, which must not lie before what has been acted.
  [[nodiscard]] machine::Counters counters(Picoseconds time);
  /// Micro-operations executed so far.
  [[nodiscard]] std::int64_t micro_ops() const noexcept;

  /// Power failure at `at`, to which the session must have been advanced. Requests that have not ended are
  /// gone; what they may have left in durable memory is drawn by `seed` from the legal images of that instant
  /// (docs/des.md). Then the service restarts through its own recovery: worker 0 executes it, from `restart_at`
  /// on; the caches are cold. Its completion has the id `id`; requests may be submitted after it.
  /// Returns how many requests were lost. Throws ConfigError where the service cannot be crashed.
  /// `lost`: a medium that does not come back, with all that it held.
  std::uint32_t crash(Picoseconds at, Picoseconds restart_at, std::uint64_t id, std::uint64_t seed,
                      std::optional<memory::Medium> lost = std::nullopt);

  /// The device pauses from `at` on for `duration`, or takes `percent` hundredths of its times from `at` on.
  /// ConfigError for DRAM. A power failure ends either.
  void stall(memory::Medium medium, Picoseconds at, Picoseconds duration);
  void slow(memory::Medium medium, Picoseconds at, std::int64_t percent);

 private:
  class WorkFeed;
  struct Worker {
    bool busy = false;
    Request request;
    std::uint64_t result = 0;
    std::uint64_t order = 0;  ///< of execution, over all workers
    bool executed = false;    ///< its service has run; the machine is at it
  };
  /// A completion that waits for its time. At one time, the smaller rank comes first.
  struct Due {
    Completion completion;
    std::uint64_t rank;
  };
  [[nodiscard]] static bool later(const Due& one, const Due& other) noexcept;

  void power_on();
  /// Of a service that can crash: what it has stored is durable.
  void forget_what_was_uncertain();
  /// The same, and what a crash may leave is followed from now on.
  void follow_from_here();
  void collect();
  void acknowledge(const machine::Retired& retired, Picoseconds at, std::uint64_t rank);
  /// Throws ConfigError where the machine has acted beyond `time`.
  void refuse_the_past(const char* what, Picoseconds time) const;

  std::unique_ptr<Service> service_;
  machine::PlatformParams platform_;
  std::uint64_t seed_;
  std::vector<Worker> workers_;
  std::unique_ptr<machine::Hierarchy> hierarchy_;
  std::unique_ptr<WorkFeed> feed_;
  std::unique_ptr<machine::Lane> lane_;
  std::unique_ptr<Twin> twin_;  ///< of a service that can crash
  std::function<void()> poll_;

  std::vector<Due> due_;  ///< heap: the earliest first
  std::vector<machine::Retired> retired_;
  std::uint64_t next_order_ = 0;
  bool in_order_ = false;  ///< requests of a shared service are acknowledged so
  // Then:
  std::vector<machine::Retired> held_;  ///< ended before an earlier one has
  Picoseconds last_acknowledged_ = 0;
  std::uint64_t next_acknowledged_ = 0;  ///< order of the next one to be acknowledged
  std::uint32_t busy_ = 0;
  Picoseconds next_action_ = kNever;
  Picoseconds acted_ = 0;  ///< the machine may have acted up to and including this time
  std::uint32_t crashes_ = 0;
  machine::Counters before_crash_;  ///< of machines that have lost their power
  std::int64_t micro_ops_before_crash_ = 0;
};

}  // namespace pmsim::system
