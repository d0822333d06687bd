#include "pmsim/machine/shared_feed.hpp"

#include <utility>

namespace pmsim::machine {

namespace {

constexpr std::int64_t kMicroOpsBetweenPolls = 1 << 20;  ///< some 20 ms

}  // namespace

SharedFeed::SharedFeed(memory::Source& source, Hierarchy& hierarchy, std::uint32_t threads, std::size_t lanes,
                       std::function<void()> poll)
    : source_(&source), hierarchy_(&hierarchy), lane_count_(lanes), poll_(std::move(poll)), logs_(threads) {
  stream_.on_poll(poll_);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    lanes_.push_back(std::make_unique<LaneFeed>(*this, threads));
  }
}

bool SharedFeed::refill(std::uint32_t thread) {
  stream_.clear();
  source_->refill(thread, stream_);
  logs_[thread].finished = stream_.empty();
  micro_ops_ += static_cast<std::int64_t>(stream_.size());
  return !stream_.empty();
}

std::int64_t SharedFeed::execute_untimed(std::int64_t operations,
                                         const std::function<void(std::span<const TimedOp>)>& executed) {
  std::int64_t ended = 0;
  std::int64_t polled_at = 0;
  std::vector<TimedOp> ops;
  for (bool more = true; more && ended < operations;) {
    more = false;
    for (std::uint32_t thread = 0; thread < logs_.size() && ended < operations; ++thread) {
      if (logs_[thread].finished || !refill(thread))
        continue;
      more = true;
      ops.clear();
      hierarchy_->classify(thread, stream_, ops, poll_);
      executed(ops);
      ended += std::ranges::count(ops, code(memory::OpKind::kOperationEnd), &TimedOp::kind);
    }
    if (poll_ && micro_ops_ - polled_at >= kMicroOpsBetweenPolls) {
      polled_at = micro_ops_;
      poll_();
    }
  }
  return ended;
}

void SharedFeed::execute(std::uint32_t thread) {
  if (!refill(thread))
    return;
  std::unique_ptr<Batch> batch;
  if (spare_.empty()) {
    batch = std::make_unique<Batch>();
  } else {
    batch = std::move(spare_.back());
    spare_.pop_back();
  }
  batch->ops.clear();
  batch->ops.reserve(stream_.size() + stream_.size() / 4);  // nearly always one timed operation for each
  batch->readers = lane_count_ + 1;
  hierarchy_->classify(thread, stream_, batch->ops, poll_);
  logs_[thread].batches.push_back(std::move(batch));
}

void SharedFeed::take(std::uint32_t thread, std::uint64_t& number, const TimedOp*& first,
                      const TimedOp*& last) {
  ThreadLog& log = logs_[thread];
  // The batch before this one has been worked off by the asking lane.
  if (number > log.first) {
    --log.batches[static_cast<std::size_t>(number - 1 - log.first)]->readers;
  }
  while (!log.batches.empty() && log.batches.front()->readers == 1) {
    spare_.push_back(std::move(log.batches.front()));
    log.batches.pop_front();
    ++log.first;
  }
  if (number == log.first + log.batches.size() && !log.finished) {
    execute(thread);
  }
  if (number == log.first + log.batches.size()) {
    first = last = nullptr;
    return;
  }
  const Batch& batch = *log.batches[static_cast<std::size_t>(number - log.first)];
  ++number;
  first = batch.ops.data();
  last = first + batch.ops.size();
}

}  // namespace pmsim::machine
