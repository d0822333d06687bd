#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/wal/record.hpp"

namespace pmsim::engines::wal {

/// The order of changes over several logs, one for each thread, which share no counter: global sequence numbers
/// (Wang and Johnson, Scalable Logging through Emerging Non-Volatile Memory, VLDB 2014; Haubenschild et al.,
/// Rethinking Logging, Checkpoints, and Recovery for High-Performance Storage Engines, SIGMOD 2020).
///
/// An LSN is the time of a logical clock (Lamport 1978) with the number of a log below it. A change has a later
/// one than all before it of its thread, and than all before it of its page, which carries the last. So LSNs of
/// different logs differ, those of a log ascend, and sorted by them the changes of every page are in the order
/// in which they were made.
///
/// What is durable when. A batch must not be durable before those that changed its pages before it: redo is
/// physical. Each of a log's latest transactions has a latch, held from its first change until it is durable.
/// Whoever changes a page that another log's transaction has changed waits for that one's latch before its own
/// batch is appended (await()), unless it has seen that log to be durable up to there. So a crash leaves no
/// gaps, and a restart has all of a page's changes up to the last that it finds. With "remote flush avoidance",
/// as SIGMOD 2020 calls it, threads that change pages of their own wait for nobody. It differs from what is
/// published: there a batch is appended at once and acknowledged when *all* logs are durable up to its LSN; a
/// restart has to tell what depends on something lost. Here it is the one transaction that the page's LSN
/// names, which has waited for its own before.
///
/// Two transactions of several operations could each have to wait for the other one. An engine would then
/// append the other's batch as far as it goes. Here it does not happen: a transaction begins when others have
/// ended, or while they commit, and these have changed their last page.
class CommitOrder {
 public:
  static constexpr std::uint32_t kLogBits = 8;
  static constexpr std::uint32_t kMostLogs = 1U << kLogBits;

  /// `first`: no LSN in any page or log is later than it. `latches`: latch_bytes(logs) of DRAM; 0: nobody
  /// waits.
  CommitOrder(std::uint32_t logs, Lsn first, Address latches)
      : latches_(latches == 0 ? Latches() : Latches(latches, std::uint64_t{logs} * kLatest)),
        threads_(logs, Thread{.last = first, .durable = std::vector<Lsn>(logs, first), .end = first}),
        releases_(logs, 0) {}

  [[nodiscard]] static constexpr std::uint64_t latch_bytes(std::uint32_t logs) noexcept {
    return Latches::bytes_for(std::uint64_t{logs} * kLatest);
  }
  [[nodiscard]] static constexpr std::uint32_t log_of(Lsn lsn) noexcept { return lsn & (kMostLogs - 1); }
  /// The first LSN of a logical time.
  [[nodiscard]] static constexpr Lsn at_time(std::uint64_t time) noexcept { return time << kLogBits; }

  void work_as(std::uint32_t log) noexcept { mine_ = log; }

  /// The page about to be changed has this LSN.
  void follow(Lsn page) {
    Thread& thread = threads_[mine_];
    const std::uint32_t log = log_of(page);
    if (log != mine_ && page > thread.durable[log] &&
        std::ranges::find(thread.awaited, page) == thread.awaited.end())
      thread.awaited.push_back(page);
    thread.last = std::max(thread.last, page);
  }
  /// No thread has given or seen this LSN or a later one.
  [[nodiscard]] Lsn next() const {
    const auto last = std::ranges::max_element(threads_, {}, &Thread::last);
    return at_time((last->last >> kLogBits) + 1);
  }
  /// From now on LSNs of the thread are not earlier.
  void raise(Lsn first) { threads_[mine_].last = std::max(threads_[mine_].last, first - 1); }
  /// The next LSN of the thread.
  [[nodiscard]] Lsn stamp() {
    Thread& thread = threads_[mine_];
    thread.last = at_time((thread.last >> kLogBits) + 1) + mine_;
    return thread.last;
  }
  /// A page came into being, or is gone. Its id passes from one to the other by way of the allocator, which has
  /// the time of each log's latest release: whoever takes an id follows all of them, since it may be of any,
  /// and must not be durable before the page is gone.
  void follow_allocator() {
    for (const Lsn release : releases_)
      follow(release);
  }
  void note_release(Lsn lsn) { releases_[mine_] = lsn; }

  /// Before the first record of a transaction.
  template <Memory M>
  void enter(M& memory) {
    if (const Address word = latch(mine_, threads_[mine_].transactions); word != 0)
      threads_[mine_].held = memory.acquire(word, LatchMode::kExclusive);
  }
  /// Before the last batch of a transaction is appended: those that it has followed are durable.
  template <Memory M>
  void await(M& memory) {
    Thread& thread = threads_[mine_];
    for (const Lsn page : thread.awaited) {
      const std::uint32_t log = log_of(page);
      const Thread& other = threads_[log];
      if (page <= thread.durable[log])
        continue;
      if (is_open(page)) {
        await_open(memory, page);
        thread.durable[log] = other.end;
        continue;
      }
      // The transaction that has made this LSN is the first one that ended behind it. Where that was before the
      // latest, or the oldest of them, it has long been durable.
      const std::uint64_t oldest = other.transactions - std::min<std::uint64_t>(other.transactions, kLatest);
      std::uint64_t maker = other.transactions - 1;
      while (maker > oldest && other.ended[(maker - 1) % kLatest] >= page)
        --maker;
      // A load of the word, and a wait while it is held.
      if (const Address word = latch(log, maker); word != 0 && (maker > oldest || maker == 0))
        static_cast<void>(memory.acquire(word, LatchMode::kOptimistic));
      thread.durable[log] = other.ended[maker % kLatest];
    }
    thread.awaited.clear();
  }
  /// Before a part of a transaction is appended: the same, but only for transactions that have not been
  /// executed to their ends. For the others nobody waits in virtual time, as latches of pages are in hand.
  template <Memory M>
  void await_open(M& memory) {
    for (const Lsn page : threads_[mine_].awaited)
      await_open(memory, page);
  }
  /// Waits until the transaction of another thread is durable that has made this LSN, where it has not ended.
  template <Memory M>
  void await_open(M& memory, Lsn page) {
    if (log_of(page) != mine_ && is_open(page))
      await_log(memory, log_of(page));
  }
  /// Waits until the transaction of that log is durable, if one has begun and not ended.
  template <Memory M>
  void await_log(M& memory, std::uint32_t log) {
    if (const Address word = latch(log, threads_[log].transactions); word != 0)
      static_cast<void>(memory.acquire(word, LatchMode::kOptimistic));
  }
  /// The transaction is durable.
  template <Memory M>
  void leave(M& memory) {
    Thread& thread = threads_[mine_];
    if (const Address word = latch(mine_, thread.transactions); word != 0)
      static_cast<void>(memory.release(word, LatchMode::kExclusive, thread.held));
    thread.ended[thread.transactions++ % kLatest] = thread.end = thread.last;
  }

 private:
  /// Transactions of a log that have a latch each. A thread that waits looks for one of another thread that was
  /// executed before its own: that thread has hardly begun another one in virtual time.
  static constexpr std::uint32_t kLatest = 8;
  /// What a thread has in its registers and its own lines, so on the host.
  struct Thread {
    Lsn last = 0;                      ///< that it has given or seen
    std::vector<Lsn> durable;          ///< of each log, as far as this thread has seen
    std::vector<Lsn> awaited{};        ///< of pages that the open transaction has changed
    std::array<Lsn, kLatest> ended{};  ///< the last of each of its latest transactions
    Lsn end = 0;                       ///< the last of all of them
    std::uint64_t transactions = 0;    ///< that have ended
    std::uint64_t held = 0;            ///< version of the latch of the open one
  };

  /// Whether the transaction that has made the LSN has not ended.
  [[nodiscard]] bool is_open(Lsn page) const noexcept { return page > threads_[log_of(page)].end; }
  [[nodiscard]] Address latch(std::uint32_t log, std::uint64_t transaction) const noexcept {
    return latches_.of(std::uint64_t{log} * kLatest + transaction % kLatest);
  }

  Latches latches_;
  std::vector<Thread> threads_;
  std::vector<Lsn> releases_;  ///< the latest of each log; 0: there was none
  std::uint32_t mine_ = 0;
};

}  // namespace pmsim::engines::wal
