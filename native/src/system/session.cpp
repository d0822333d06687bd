#include "pmsim/system/session.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "pmsim/core/error.hpp"
#include "pmsim/system/twin.hpp"

namespace pmsim::system {

namespace {

/// The kind of the request that a session gives itself after a power failure.
constexpr std::uint32_t kRestart = ~std::uint32_t{0};
/// Micro-operations of a warm-up that take a host about as long as a unit of work (core/poll.hpp).
constexpr std::size_t kOpsPerUnit = 64;

}  // namespace

/// Executes the request that its worker has been given, when the thread asks for it.
class Session::WorkFeed final : public machine::Feed {
 public:
  explicit WorkFeed(Session& session) : session_(session), batches_(session.workers_.size()) {}

  void next(std::uint32_t thread, const machine::TimedOp*& first, const machine::TimedOp*& last) override {
    Batch& batch = batches_[thread];
    if (batch.given == batch.ops.size() && !fill(thread, batch)) {
      first = last = nullptr;
      return;
    }
    // Long ones in pieces: see machine::SharedFeed.
    const std::size_t piece = std::min(batch.ops.size() - batch.given, kPiece);
    first = batch.ops.data() + batch.given;
    last = first + piece;
    batch.given += piece;
  }
  [[nodiscard]] bool sleeps() const noexcept override { return true; }

  void restart_with(memory::SimMemory memory) { memory_.emplace(std::move(memory)); }
  [[nodiscard]] std::int64_t micro_ops() const noexcept { return micro_ops_; }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  struct Batch {
    std::vector<machine::TimedOp> ops;
    std::size_t given = 0;
  };

  /// Executes the worker's request, if it has one.
  bool fill(std::uint32_t thread, Batch& batch) {
    Worker& worker = session_.workers_[thread];
    if (!worker.busy || worker.executed)
      return false;
    execute(thread, worker);
    batch.ops.clear();
    batch.given = 0;
    session_.hierarchy_->classify(thread, stream_, batch.ops, session_.poll_);
    return true;
  }
  void execute(std::uint32_t thread, Worker& worker) {
    stream_.clear();
    stream_.on_poll(session_.poll_);
    Service& service = *session_.service_;
    if (worker.request.kind == kRestart) {
      stream_.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
      service.restart(std::move(*memory_), stream_);
      stream_.push(memory::OpKind::kOperationEnd, 0, 0);
      memory_.reset();
    } else {
      worker.result = service.execute(thread, worker.request, stream_);
    }
    micro_ops_ += static_cast<std::int64_t>(stream_.size());
    worker.executed = true;
    worker.order = session_.next_order_++;
    if (session_.twin_) {
      memory::SimMemory& tracked = *service.tracked_memory();
      session_.twin_->executed(thread, tracked.log(), session_.lane_->threads()[thread].barriers_begun());
      tracked.keep_log();
    }
  }

  Session& session_;
  memory::Stream stream_;
  std::vector<Batch> batches_;  ///< by thread: what it was given is valid until its next call
  std::optional<memory::SimMemory> memory_;
  std::int64_t micro_ops_ = 0;
};

Session::Session(std::unique_ptr<Service> service, const machine::PlatformParams& platform,
                 std::uint32_t workers, std::uint64_t seed)
    : service_(std::move(service)), platform_(platform), seed_(seed), workers_(workers) {
  machine::validate(platform);
  const std::int64_t threads = platform.core.cores * platform.core.threads_per_core;
  if (workers == 0 || static_cast<std::int64_t>(workers) > threads) {
    throw ConfigError("workers: " + std::to_string(workers) + " on a machine with " + std::to_string(threads) +
                      " hardware threads; choose 1 to " + std::to_string(threads));
  }
  if (memory::SimMemory* tracked = service_->tracked_memory(); tracked != nullptr) {
    twin_ = std::make_unique<Twin>(*tracked, workers);
    tracked->keep_log();
    in_order_ = true;
  }
  power_on();
}

Session::~Session() = default;

void Session::power_on() {
  hierarchy_ = std::make_unique<machine::Hierarchy>(platform_, workers(), service_->shares_lines());
  feed_ = std::make_unique<WorkFeed>(*this);
  lane_ = std::make_unique<machine::Lane>(platform_, workers(), *feed_, seed_ + crashes_,
                                          service_->pmem_footprint(), service_->shares_lines());
  next_action_ = lane_->serve(1);  // nobody has work: all fall asleep
  ensure(next_action_ == kNever, "a worker without work does not sleep");
}

void Session::warm_up(Mix mix, std::uint64_t requests, const Watch& watch) {
  if (acted_ != 0 || next_order_ != 0 || busy_ != 0)
    throw ConfigError("server: it has served others before; warm up a fresh one");
  memory::Stream stream;
  std::vector<machine::TimedOp> ops;
  Poll poll(watch, Phase::kWarmUp);
  poll.expect(requests);
  try {
    for (std::uint64_t number = 0; number < requests; ++number) {
      const Mix::Draw draw = mix.draw();
      const auto worker = static_cast<std::uint32_t>(number % workers());
      stream.clear();
      ops.clear();
      static_cast<void>(service_->execute(worker, {number, draw.kind, draw.first, draw.count}, stream));
      hierarchy_->classify(worker, stream, ops);
      // Latches are free, and the block device is done at once.
      std::erase_if(ops, [](const machine::TimedOp& op) { return machine::is_wait(op.kind); });
      lane_->execute_untimed(ops);
      forget_what_was_uncertain();
      poll.worked(stream.size() / kOpsPerUnit + 1);
    }
  } catch (...) {
    follow_from_here();
    throw;
  }
  follow_from_here();
}

void Session::forget_what_was_uncertain() {
  if (memory::SimMemory* tracked = service_->tracked_memory(); tracked != nullptr) {
    tracked->make_all_durable();
    tracked->keep_log();
  }
}

void Session::follow_from_here() {
  forget_what_was_uncertain();
  // What takes no time is not counted either.
  before_crash_ = machine::Counters{}.since(lane_->counters().plus(hierarchy_->counters()));
  if (twin_)
    twin_ = std::make_unique<Twin>(*service_->tracked_memory(), workers());
}

void Session::submit(std::uint32_t worker, const Request& request, Picoseconds at) {
  if (worker >= workers_.size())
    throw ConfigError("worker: " + std::to_string(worker) + " of " + std::to_string(workers_.size()));
  Worker& taken = workers_[worker];
  ensure(!taken.busy, "a request for a worker that has one");
  ensure(at >= acted_, "a request in the past of the machine");
  taken.busy = true;
  taken.executed = false;
  taken.request = request;
  taken.result = 0;
  ++busy_;
  if (lane_->threads()[worker].sleeping()) {
    lane_->wake(worker, at);
    next_action_ = std::min(next_action_, lane_->threads()[worker].next_action());
  }
}

Picoseconds Session::advance(Picoseconds before) {
  for (;;) {
    const Picoseconds due = due_.empty() ? kNever : due_.front().completion.time;
    const Picoseconds bound = std::min(before, due);
    if (next_action_ >= bound) {
      acted_ = bound == kNever ? acted_ : std::max(acted_, bound - 1);
      return due <= before ? due : kNever;
    }
    next_action_ = lane_->serve(bound, poll_);
    collect();
    ensure(next_action_ != kNever || busy_ == due_.size(), "a request that nobody can end");
  }
}

void Session::collect() {
  lane_->take_retired(retired_);
  if (!in_order_ || !service_->shared()) {
    for (const machine::Retired& retired : retired_)
      acknowledge(retired, retired.end, retired.thread);
    return;
  }
  held_.insert(held_.end(), retired_.begin(), retired_.end());
  for (bool found = true; found;) {
    found = false;
    for (std::size_t index = 0; index < held_.size(); ++index) {
      const machine::Retired retired = held_[index];
      if (workers_[retired.thread].order != next_acknowledged_)
        continue;
      last_acknowledged_ = std::max(last_acknowledged_, retired.end);
      acknowledge(retired, last_acknowledged_, next_acknowledged_++);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
      found = true;
      break;
    }
  }
}

void Session::acknowledge(const machine::Retired& retired, Picoseconds at, std::uint64_t rank) {
  const Worker& worker = workers_[retired.thread];
  due_.push_back({Completion{at, retired.thread, worker.request.id, retired.begin, worker.result}, rank});
  std::push_heap(due_.begin(), due_.end(), later);
}

bool Session::later(const Due& one, const Due& other) noexcept {
  return one.completion.time != other.completion.time ? one.completion.time > other.completion.time
                                                      : one.rank > other.rank;
}

void Session::take_due(std::vector<Completion>& into) {
  into.clear();
  while (!due_.empty() && (into.empty() || due_.front().completion.time == into.front().time)) {
    std::pop_heap(due_.begin(), due_.end(), later);
    const Completion completion = due_.back().completion;
    due_.pop_back();
    into.push_back(completion);
    workers_[completion.worker].busy = false;
    --busy_;
    if (twin_)
      twin_->ended(completion.worker);
  }
}

Picoseconds Session::next() const noexcept {
  return due_.empty() ? next_action_ : std::min(next_action_, due_.front().completion.time);
}

void Session::refuse_the_past(const char* what, Picoseconds time) const {
  if (time < acted_)
    throw ConfigError(std::string(what) + ": at " + std::to_string(time) +
                      " ps, and the machine has acted up to " + std::to_string(acted_) +
                      " ps; name a time from then on, as `now` of the load that drives it");
}

machine::Counters Session::counters(Picoseconds time) {
  refuse_the_past("counters", time);
  return before_crash_.plus(lane_->counters_at(time).plus(hierarchy_->counters()));
}

std::int64_t Session::micro_ops() const noexcept { return micro_ops_before_crash_ + feed_->micro_ops(); }

std::uint32_t Session::crash(Picoseconds at, Picoseconds restart_at, std::uint64_t id, std::uint64_t seed,
                             std::optional<memory::Medium> lost) {
  if (!twin_)
    throw ConfigError("this server cannot be crashed; make it with crash=True");
  refuse_the_past("power failure", at);
  ensure(restart_at >= at, "a restart before the power failure");
  if (const std::string part = lost ? service_->needing(*lost) : ""; !part.empty()) {
    throw ConfigError("lost: part '" + part + "' keeps data there and has nothing to recover from without; " +
                      "leave this out, or go on with a fresh server");
  }
  std::vector<std::uint64_t> completed;
  std::vector<std::uint32_t> in_flight;
  for (std::uint32_t worker = 0; worker < workers(); ++worker) {
    completed.push_back(lane_->threads()[worker].barriers_completed(at));
    const bool counts = workers_[worker].busy && workers_[worker].executed;
    if (counts && !service_->shared()) {
      in_flight.push_back(worker);
    } else if (counts && (in_flight.empty() || workers_[worker].order < workers_[in_flight[0]].order)) {
      in_flight.assign(1, worker);
    }
  }
  Random random(seed);
  memory::SimMemory after = twin_->fail(completed, in_flight, random, lost);
  before_crash_ = counters(at);
  micro_ops_before_crash_ = micro_ops();
  const std::uint32_t cut_off = busy_;
  due_.clear();
  held_.clear();
  workers_.assign(workers_.size(), Worker{});
  busy_ = 0;
  next_order_ = next_acknowledged_ = 0;
  ++crashes_;
  power_on();
  // The new machine's clock is the old one's: what has passed so far has been counted.
  lane_->settle(at);
  before_crash_ = before_crash_.since(lane_->counters());
  twin_ = std::make_unique<Twin>(after, workers());
  after.keep_log();
  feed_->restart_with(std::move(after));
  submit(0, Request{.id = id, .kind = kRestart}, restart_at);
  return cut_off;
}

void Session::stall(memory::Medium medium, Picoseconds at, Picoseconds duration) {
  ensure(at >= acted_, "a fault in the past of the machine");
  lane_->stall(medium, at, duration);
}

void Session::slow(memory::Medium medium, Picoseconds at, std::int64_t percent) {
  ensure(at >= acted_, "a fault in the past of the machine");
  lane_->slow(medium, at, percent);
}

}  // namespace pmsim::system
