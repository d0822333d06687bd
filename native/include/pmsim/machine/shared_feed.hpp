#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "pmsim/machine/hierarchy.hpp"
#include "pmsim/machine/virtual_thread.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::machine {

/// One execution for many machines: executes each thread's work once, classifies it once, and hands the result
/// to every lane at that lane's own pace. What all lanes have taken is recycled.
///
/// The lane that asks first decides in which order threads touch the shared cache; the others replay the
/// outcome.
class SharedFeed {
 public:
  /// `poll`: see Hierarchy::classify and Stream::on_poll.
  SharedFeed(memory::Source& source, Hierarchy& hierarchy, std::uint32_t threads, std::size_t lanes,
             std::function<void()> poll = {});

  /// Executes and classifies some operations, the threads in turn, before any lane asks: `operations`, rounded
  /// up to a refill, or all there are. `executed` is told of each batch. Returns how many have ended.
  std::int64_t execute_untimed(std::int64_t operations,
                               const std::function<void(std::span<const TimedOp>)>& executed);

  [[nodiscard]] Feed& lane(std::size_t index) noexcept { return *lanes_[index]; }
  /// Micro-operations executed so far, over all threads.
  [[nodiscard]] std::int64_t micro_ops() const noexcept { return micro_ops_; }

 private:
  struct Batch {
    std::vector<TimedOp> ops;
    std::size_t readers = 0;  ///< lanes that have still to take it
  };
  struct ThreadLog {
    std::deque<std::unique_ptr<Batch>> batches;
    std::uint64_t first = 0;  ///< number of the first batch in `batches`
    bool finished = false;
  };
  /// Hands out a long batch in pieces: the recovery of an engine has hundreds of millions of operations, and a
  /// lane is asked how far it is, and may be stopped, between two of what it is given.
  class LaneFeed final : public Feed {
   public:
    LaneFeed(SharedFeed& owner, std::uint32_t threads) : owner_(owner), taken_(threads) {}
    void next(std::uint32_t thread, const TimedOp*& first, const TimedOp*& last) override {
      Taken& taken = taken_[thread];
      if (taken.rest == taken.end)
        owner_.take(thread, taken.batches, taken.rest, taken.end);
      first = taken.rest;
      last = taken.rest += std::min<std::ptrdiff_t>(taken.end - taken.rest, kPiece);
    }

   private:
    static constexpr std::ptrdiff_t kPiece = 1 << 20;  ///< some 100 ms
    struct Taken {
      std::uint64_t batches = 0;      ///< number of the next batch
      const TimedOp* rest = nullptr;  ///< of the batch before it
      const TimedOp* end = nullptr;
    };
    SharedFeed& owner_;
    std::vector<Taken> taken_;  ///< per thread
  };

  void take(std::uint32_t thread, std::uint64_t& number, const TimedOp*& first, const TimedOp*& last);
  void execute(std::uint32_t thread);
  /// The next piece of a thread's work is in `stream_`; false where there is none, and never will be.
  bool refill(std::uint32_t thread);

  memory::Source* source_;
  Hierarchy* hierarchy_;
  std::size_t lane_count_;
  std::function<void()> poll_;
  std::vector<ThreadLog> logs_;
  std::vector<std::unique_ptr<Batch>> spare_;
  std::vector<std::unique_ptr<LaneFeed>> lanes_;
  memory::Stream stream_;
  std::int64_t micro_ops_ = 0;
};

}  // namespace pmsim::machine
