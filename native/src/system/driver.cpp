#include "pmsim/system/driver.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "pmsim/core/error.hpp"

namespace pmsim::system {

Driver::Driver(Session& session, std::vector<TenantSpec> tenants, bool keep_log)
    : session_(session),
      tenants_(std::move(tenants)),
      keep_log_(keep_log),
      serving_(session.workers()),
      free_((session.workers() + 63) / 64, 0),
      free_count_(session.workers()) {
  for (std::uint32_t worker = 0; worker < session.workers(); ++worker) {
    ensure(session.idle(worker), "a driver for a session that is at work");
    free_[worker / 64] |= std::uint64_t{1} << (worker % 64);
  }
  for (std::uint32_t tenant = 0; tenant < tenants_.size(); ++tenant) {
    if (tenants_[tenant].clients == 0 && tenants_[tenant].arrivals.standing())
      throw ConfigError("arrivals.interval: 0 ps between requests that nobody waits for; choose at least 1 ps");
    recorders_.emplace_back(tenants_[tenant].window);
    for (std::uint32_t client = 0; client < std::max(1U, tenants_[tenant].clients); ++client)
      set_timer(tenant);
  }
}

void Driver::set_timer(std::uint32_t tenant) {
  const Picoseconds gap = tenants_[tenant].arrivals.next();
  if (gap != Arrivals::kNoMore && gap < kNever - now_)  // else it comes after the end of time
    push_timer({now_ + gap, next_timer_++, tenant});
}

void Driver::arrive(std::uint32_t tenant) {
  const Mix::Draw draw = tenants_[tenant].mix.draw();
  recorders_[tenant].submitted(now_);
  const Waiting request{Request{next_request_++, draw.kind, draw.first, draw.count}, tenant, now_};
  if (free_count_ > 0 && !draining_) {
    grant(request);
  } else {
    queue_.push_back(request);
  }
  if (tenants_[tenant].clients == 0)
    set_timer(tenant);
}

void Driver::complete(const Completion& completion) {
  const Serving served = serving_[completion.worker];  // a copy: the worker may be given to the next one
  recorders_[served.tenant].completed(served.submitted, served.granted, completion.time);
  if (keep_log_) {
    log_.push_back({served.tenant, completion.request, completion.worker, served.submitted, served.granted,
                    completion.begin, completion.time});
  }
  free_[completion.worker / 64] |= std::uint64_t{1} << (completion.worker % 64);
  ++free_count_;
  if (!queue_.empty() && !draining_) {
    const Waiting next = queue_.front();
    queue_.pop_front();
    grant(next);
  }
  if (tenants_[served.tenant].clients > 0)
    set_timer(served.tenant);
}

void Driver::grant(const Waiting& request) {
  std::size_t word = 0;
  while (free_[word] == 0)
    ++word;
  const auto worker =
      static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(std::countr_zero(free_[word]));
  free_[word] &= free_[word] - 1;
  --free_count_;
  serving_[worker] = {request.tenant, request.submitted, now_};
  session_.submit(worker, request.request, now_);
}

void Driver::push_timer(const Timer& timer) {
  timers_.push_back(timer);
  std::push_heap(timers_.begin(), timers_.end(), std::greater<>{});
}

bool Driver::step(Picoseconds until) {
  const Picoseconds timer = timers_.empty() ? kNever : timers_.front().at;
  const Picoseconds due = session_.advance(std::min(timer, until));
  // What is due at `until` belongs to the next call, like every event of that time.
  if (due != kNever && due < until) {
    now_ = due;
    session_.take_due(due_);
    for (const Completion& completion : due_)
      complete(completion);
  } else if (timer < until) {
    now_ = timer;
  } else {
    return false;
  }
  while (!timers_.empty() && timers_.front().at == now_) {
    const std::uint32_t tenant = timers_.front().tenant;
    std::pop_heap(timers_.begin(), timers_.end(), std::greater<>{});
    timers_.pop_back();
    arrive(tenant);
  }
  return true;
}

/// Those who have waited for the end of a drain.
void Driver::give_waiting() {
  draining_ = false;
  while (free_count_ > 0 && !queue_.empty()) {
    const Waiting next = queue_.front();
    queue_.pop_front();
    grant(next);
  }
}

void Driver::run(Picoseconds until, const Watch& watch) {
  ensure(until >= now_, "a driver that should run into the past");
  give_waiting();
  const Picoseconds from = now_;
  for (std::uint32_t steps = 1; step(until); ++steps) {  // a step may be a scan of many rows
    if (watch && (steps & 0x3ff) == 0)
      watch({Phase::kMeasure, static_cast<double>(now_ - from) / static_cast<double>(until - from)});
  }
  now_ = until;
}

void Driver::finish(const Watch& watch) {
  give_waiting();
  const auto waiting = static_cast<double>(std::max<std::size_t>(queue_.size(), 1));
  for (std::uint32_t steps = 1; !timers_.empty() || free_count_ < serving_.size(); ++steps) {
    ensure(step(kNever - 1), "a worker that never ends");
    if (watch && (steps & 0x3ff) == 0)
      watch({Phase::kMeasure, std::max(0.0, 1 - static_cast<double>(queue_.size()) / waiting)});
  }
}

void Driver::drain() {
  draining_ = true;
  while (free_count_ < serving_.size())
    ensure(step(kNever - 1), "a worker that never ends");
}

void Driver::archive(Archive& archive) {
  constexpr std::uint64_t kVersion = 2;
  std::uint64_t version = kVersion;
  archive.value(version);
  if (version != kVersion)
    throw ConfigError("state: of another version");
  archive.value(now_);
  archive.value(next_timer_);
  archive.value(next_request_);
  archive.sequence(timers_);
  archive.sequence(queue_);
  for (std::size_t tenant = 0; tenant < tenants_.size(); ++tenant) {
    tenants_[tenant].arrivals.archive(archive);
    tenants_[tenant].mix.archive(archive);
    recorders_[tenant].archive(archive);
  }
}

std::string Driver::save() {
  ensure(free_count_ == serving_.size(), "the state of a driver that is at work");
  Archive out;
  archive(out);
  return out.written();
}

void Driver::restore(std::string_view state) {
  Archive in(state);
  archive(in);
  if (!in.at_end())
    throw ConfigError("state: it is longer than this load's; it belongs to another one");
}

}  // namespace pmsim::system
