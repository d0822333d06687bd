#include "pmsim/machine/lane.hpp"

#include <algorithm>

#include "pmsim/core/error.hpp"

namespace pmsim::machine {

Lane::Lane(const PlatformParams& params, std::uint32_t threads, Feed& feed, std::uint64_t seed,
           std::uint64_t pmem_footprint)
    : params_(params),
      counters_(std::make_unique<Counters>()),
      memory_(params, *counters_, seed, pmem_footprint),
      agents_(threads + static_cast<std::size_t>(params.pmem.dimms)) {
  const auto core_count = static_cast<std::uint32_t>(params.core.cores);
  const std::uint32_t cores = std::min(threads, core_count);
  for (std::uint32_t core = 0; core < cores; ++core) {
    cores_.emplace_back(params);
  }
  threads_.reserve(threads);
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    const std::uint32_t core = thread % cores;
    const std::int64_t sharing = (threads - core + cores - 1) / cores;
    threads_.emplace_back(thread, params, sharing, cores_[core], memory_, *counters_, feed);
    agents_.set(thread, threads_.back().next_action());
  }
}

bool Lane::finished() const noexcept {
  return std::all_of(threads_.begin(), threads_.end(), [](const VirtualThread& thread) { return thread.finished(); });
}

void Lane::settle_thread(std::size_t thread) { agents_.set(thread, threads_[thread].next_action()); }

void Lane::settle_module(std::size_t module) {
  const std::size_t agent = threads_.size() + module;
  const Picoseconds next = memory_.modules()[module].next_drain();
  if (agents_.key(agent) != next) {
    agents_.set(agent, next);
  }
}

void Lane::step(Picoseconds until) {
  const std::size_t agent = agents_.earliest();
  now_ = std::max(now_, agents_.key(agent));
  if (agent < threads_.size()) {
    VirtualThread& thread = threads_[agent];
    const std::int64_t before = thread.operations();
    const Picoseconds limit = std::min(until, agents_.runner_up(agent));
    agents_.set(agent, thread.advance(limit));
    operations_ += thread.operations() - before;
    if (!memory_.modules().empty()) {
      settle_module(memory_.last_module());
    }
    if (cores_.size() < threads_.size()) {  // siblings share buffers: this one may have freed what the other waits for
      for (std::size_t sibling = agent % cores_.size(); sibling < threads_.size(); sibling += cores_.size()) {
        if (sibling != agent && threads_[sibling].waits_for_buffer() && !cores_[agent % cores_.size()].all_buffers_wait()) {
          threads_[sibling].buffers_changed();
          settle_thread(sibling);
        }
      }
    }
    return;
  }
  const std::size_t module = agent - threads_.size();
  grants_.clear();
  memory_.drain(module, grants_);
  settle_module(module);
  for (const Grant& grant : grants_) {
    settle_module(grant.module);
    if (grant.token.controller) {
      continue;
    }
    threads_[grant.token.thread].granted(grant);
    for (std::size_t sibling = grant.token.thread % cores_.size(); sibling < threads_.size(); sibling += cores_.size()) {
      threads_[sibling].buffers_changed();
      settle_thread(sibling);
    }
  }
}

bool Lane::run(std::int64_t operations, std::int64_t max_steps) {
  for (std::int64_t steps = 0; operations_ < operations; ++steps) {
    if (agents_.key(agents_.earliest()) == kNever) {
      if (!finished()) {
        throw SimulationError("pmsim bug: all threads wait and nobody can act");
      }
      return false;
    }
    if (steps == max_steps) {
      return true;
    }
    step(kNever - 1);
  }
  return false;
}

Picoseconds Lane::run_until(Picoseconds until) {
  while (agents_.key(agents_.earliest()) <= until && agents_.key(agents_.earliest()) != kNever) {
    step(until);
  }
  return agents_.key(agents_.earliest());
}

}  // namespace pmsim::machine
