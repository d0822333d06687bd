#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "pmsim/engines/wal/record.hpp"

namespace pmsim::engines::wal {

using memory::Address;

/// Since when pages are dirty, where there are several logs: in epochs, as no position in one of them says
/// anything about another (epochs as in Tu et al., Speedy Transactions in Multicore In-Memory Databases, SOSP
/// 2013, section 4.1). An epoch ends when a log has grown by a part of its size in it, so that a log is cut at
/// its bounds. The number is one word of DRAM, which all read when a transaction begins and which hardly ever
/// changes. The order of LSNs is that of epochs: whoever ends one looks at every thread's clock, and nobody's
/// next LSN is earlier. A transaction whose commit is under way has all of its LSNs. (In an engine whose
/// operations overlap, those of the old epoch would have to end first.)
///
/// Volatile: after a restart everything is of the first epoch.
class Epochs {
 public:
  /// Of what a restart finds in the logs.
  static constexpr std::uint64_t kFirst = 1;

  /// `word`: a line of DRAM. `heads`: of the logs. One that grows by `step` in an epoch ends it. Changes of the
  /// first epoch have LSNs from `first` on, those behind it from `next` on.
  template <Memory M>
  Epochs(M& memory, Address word, std::uint64_t step, const std::vector<Lsn>& heads, Lsn first, Lsn next)
      : word_(word), step_(step), lsns_{{kFirst, first}, {kFirst + 1, next}} {
    memory.template store<std::uint64_t>(word_, now_);
    for (const Lsn head : heads)
      begins_.push_back({{kFirst, head}});
  }

  /// A transaction of the log begins, whose tail is there. next_lsn(): none has been given from there on.
  template <Memory M, typename NextLsn>
  void enter(M& memory, std::uint32_t log, Lsn tail, NextLsn&& next_lsn) {
    now_ = memory.template load<std::uint64_t>(word_);
    std::deque<Begin>& begins = begins_[log];
    if (begins.back().epoch == now_ && tail - begins.back().at >= step_) [[unlikely]]
      end(memory, next_lsn());
    if (begins.back().epoch != now_) [[unlikely]]
      begins.push_back({now_, tail});
  }
  /// The epoch ends; changes have LSNs from `next` on.
  template <Memory M>
  void end(M& memory, Lsn next) {
    now_ = memory.fetch_add(word_, 1) + 1;
    lsns_[now_] = next;
  }
  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }

  /// No change in it, or later, has an earlier LSN; none before it has a later one.
  [[nodiscard]] Lsn first_lsn(std::uint64_t epoch) const { return lsns_.at(epoch); }

  /// Where the log begins that changes since the epoch need; its tail where there are none.
  [[nodiscard]] Lsn since(std::uint32_t log, std::uint64_t epoch, Lsn tail) const {
    const auto begin = std::ranges::find_if(begins_[log], [&](const Begin& b) { return b.epoch >= epoch; });
    return begin == begins_[log].end() ? tail : begin->at;
  }
  /// The first epoch since which the log has grown by no more than `bytes`.
  [[nodiscard]] std::uint64_t within(std::uint32_t log, std::uint64_t bytes, Lsn tail) const {
    const auto begin = std::ranges::find_if(begins_[log], [&](const Begin& b) { return tail - b.at <= bytes; });
    return begin == begins_[log].end() ? now_ : begin->epoch;
  }
  /// The log has been truncated up to there; nothing before the epoch will be asked for.
  void forget(std::uint32_t log, Lsn head, std::uint64_t epoch) {
    while (begins_[log].size() > 1 && begins_[log].front().at < head)
      begins_[log].pop_front();
    lsns_.erase(lsns_.begin(), lsns_.lower_bound(epoch));
  }

 private:
  struct Begin {
    std::uint64_t epoch;
    Lsn at;
  };
  Address word_;
  std::uint64_t step_;
  std::uint64_t now_ = kFirst + 1;
  // Ascending, on the host, as hardly ever asked for.
  std::map<std::uint64_t, Lsn> lsns_;      ///< first_lsn()
  std::vector<std::deque<Begin>> begins_;  ///< of each log; never empty
};

}  // namespace pmsim::engines::wal
