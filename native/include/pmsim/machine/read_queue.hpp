#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/core/time.hpp"
#include "pmsim/machine/buffer_pool.hpp"
#include "pmsim/machine/tournament.hpp"

namespace pmsim::machine {

/// Which load waits for a read: the number of a load that waits in a virtual thread.
struct ReadToken {
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};  ///< as `load`: there is no room to wait
  std::uint32_t thread = 0;
  std::uint32_t load = kNobody;
};

/// A read that could not enter its module's read pending queue at once.
struct WaitingRead {
  std::uint64_t line;  ///< of the module
  std::size_t slice;   ///< of the last-level cache, where it waits
  Picoseconds arrived;
  ReadToken token;
};

/// A waiting read has entered.
struct Admission {
  ReadToken token;
  Picoseconds entered;
  Picoseconds done;  ///< its data leave the controller
};

/// When each place of a read pending queue is free. Until somebody has had to wait, reads finish nearly in
/// order, which is what a sorted ring is good at; later they finish in any order, and nobody can predict how
/// far up the ring one belongs, while a tournament does the same for all.
class ReadPlaces {
 public:
  explicit ReadPlaces(std::size_t places) : places_(places), ring_(places), tournament_(places) {}

  [[nodiscard]] Picoseconds earliest() const noexcept {
    return waited_for_ ? tournament_.earliest_key() : ring_.earliest();
  }
  /// Takes the earliest place until `until`.
  void take(Picoseconds until) {
    if (waited_for_) {
      tournament_.set(tournament_.earliest(), until);
    } else {
      ring_.take(until);
    }
  }
  /// Somebody waits for a place.
  void wait() {
    for (std::size_t place = 0; !waited_for_ && place < places_; ++place) {
      tournament_.set(place, ring_.earliest());
      ring_.take_waiting();
    }
    waited_for_ = true;
  }

 private:
  std::size_t places_;
  BufferPool ring_;
  Tournament tournament_;
  bool waited_for_ = false;  ///< the times are in the tournament, no longer in the ring
};

/// The read pending queue of a PMem channel: a read has one of its places until its data leave the controller.
/// What finds none waits in a slice of the last-level cache. A place that becomes free goes to a slice, the
/// likelier the more lines wait there, and in it to any of the `credits` oldest: requests retry, and nobody
/// keeps an order.
class ReadQueue {
 public:
  /// `places` of 0: nobody waits.
  ReadQueue(std::size_t places, std::size_t slices, std::size_t credits)
      : bounded_(places > 0), places_(std::max<std::size_t>(1, places)), slices_(slices), credits_(credits) {}

  /// A read that arrives at `now` finds a place.
  [[nodiscard]] bool admits(Picoseconds now) const noexcept {
    return !bounded_ || (waiting_ == 0 && places_.earliest() <= now);
  }
  /// A read leaves the controller at `done`. One that has not waited and finds no place takes the next one,
  /// too.
  void take_place(Picoseconds done) {
    if (bounded_) {
      places_.take(done);
    }
  }

  void wait(const WaitingRead& read) {
    places_.wait();
    slices_[read.slice].push_back(read);
    ++waiting_;
  }
  [[nodiscard]] bool has_waiting() const noexcept { return waiting_ > 0; }
  /// When the next waiting read can enter; kNever where none waits.
  [[nodiscard]] Picoseconds next_admission() const noexcept {
    return waiting_ == 0 ? kNever : places_.earliest();
  }
  /// Takes one of the waiting reads, which must be there.
  [[nodiscard]] WaitingRead take_waiting(Random& random) {
    std::uint64_t left = random.below(waiting_);
    std::size_t number = 0;
    for (; left >= slices_[number].size(); ++number) {
      left -= slices_[number].size();
    }
    std::vector<WaitingRead>& slice = slices_[number];
    const auto chosen = static_cast<std::ptrdiff_t>(random.below(std::min(credits_, slice.size())));
    const WaitingRead taken = slice[static_cast<std::size_t>(chosen)];
    slice.erase(slice.begin() + chosen);
    --waiting_;
    return taken;
  }

 private:
  bool bounded_;
  ReadPlaces places_;
  std::vector<std::vector<WaitingRead>> slices_;  ///< in order of arrival
  std::size_t credits_;
  std::size_t waiting_ = 0;
};

}  // namespace pmsim::machine
