#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// What the threads of one lane have handed over to be written to the block device together (group commit), and
/// who waits for it, in virtual time.
///
/// Who gathers in virtual time one behind the other writes to one place behind the other. The addresses do not
/// say so, as operations have been executed in an order of their own: a group lies where its first piece does,
/// and is as long as all of them.
class GroupCommit {
 public:
  struct Range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  /// A thread that has waited, and looks again since `at`.
  struct Woken {
    std::uint32_t thread;
    Picoseconds at;
  };

  explicit GroupCommit(std::uint32_t threads) : latest_(threads) {}

  void gather(std::uint32_t thread, std::uint64_t address, std::uint64_t bytes) {
    if (next_.bytes == 0)
      next_.address = address;
    next_.bytes += bytes;
    latest_[thread] = ++gathered_;
  }

  /// All that the thread has gathered.
  [[nodiscard]] bool is_durable(std::uint32_t thread) const { return latest_[thread] <= durable_; }
  [[nodiscard]] bool is_under_way() const noexcept { return taken_ != durable_; }

  /// The caller leads the next group, which is all that has been gathered, to its end().
  Range begin() {
    ensure(!is_under_way() && next_.bytes > 0, "a group begins inside of another, or with nothing in it");
    taken_ = gathered_;
    return std::exchange(next_, {});
  }
  /// Wakes who is durable now, and one of the others, to lead the next group.
  void end(Picoseconds at) {
    durable_ = taken_;
    bool leads = false;
    std::erase_if(waiting_, [&](std::uint32_t thread) {
      const bool woken = is_durable(thread) || !std::exchange(leads, true);
      if (woken)
        woken_.push_back({thread, at});
      return woken;
    });
  }
  /// While a group is under way.
  void wait(std::uint32_t thread) { waiting_.push_back(thread); }

  [[nodiscard]] bool has_woken() const noexcept { return !woken_.empty(); }
  /// Those since the last call, in `into`.
  void take_woken(std::vector<Woken>& into) {
    into.clear();
    into.swap(woken_);
  }

 private:
  // Of the pieces: so many have been gathered, taken by a group, and are durable.
  std::uint64_t gathered_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t durable_ = 0;
  Range next_;
  std::vector<std::uint64_t> latest_;  ///< by thread, number of its latest piece
  std::vector<std::uint32_t> waiting_;
  std::vector<Woken> woken_;
};

}  // namespace pmsim::machine
