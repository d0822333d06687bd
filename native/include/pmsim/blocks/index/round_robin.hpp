#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "pmsim/blocks/index/frame_pool.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::index {

/// What a suspended coroutine waits for.
struct Wait {
  bool barrier = false;                 ///< for what it has flushed to be durable; else for a prefetched line
  memory::Site site = memory::kNoSite;  ///< of that barrier
};

/// A C++20 coroutine (a fiber, in the paper's words) that a RoundRobin resumes. Its first parameter is the
/// FramePool that its frame comes from.
class Task {
 public:
  struct promise_type {
    Wait wait;
    std::exception_ptr failure;

    template <typename... Arguments>
    static void* operator new(std::size_t bytes, FramePool& pool, Arguments&&...) {
      return pool.take(bytes);
    }
    static void operator delete(void* frame) noexcept { FramePool::give_back(frame); }

    Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { failure = std::current_exception(); }
    /// `co_await Wait{...}` returns control to the scheduler.
    std::suspend_always await_transform(Wait what) noexcept {
      wait = what;
      return {};
    }
  };
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_)
      handle_.destroy();
  }

  [[nodiscard]] bool done() const noexcept { return handle_.done(); }
  [[nodiscard]] const Wait& wait() const noexcept { return handle_.promise().wait; }
  void resume() {
    handle_.promise().wait = {};
    handle_.resume();
    if (handle_.promise().failure)
      std::rethrow_exception(handle_.promise().failure);
  }

 private:
  Handle handle_;
};

/// Runs a group of coroutines to their ends, in turns: each is resumed up to its next suspension, then the next
/// one. When a turn is over and anybody waits for durability, one barrier serves all of them (Fig. 11).
class RoundRobin {
 public:
  /// Makes `count` tasks with `make(pool, index)`, starting each as soon as it exists. `barrier(site)` is
  /// called at most once per turn, `resuming()` before each start or resumption.
  template <typename Make, typename Barrier, typename Resuming>
  void run(std::size_t count, Make&& make, Barrier&& barrier, Resuming&& resuming) {
    // Of an earlier group that an exception has ended.
    tasks_.clear();
    Wait shared;
    for (std::size_t index = 0; index < count; ++index) {
      tasks_.push_back(make(pool_, index));
      resuming();
      turn(tasks_.back(), shared);
    }
    for (bool active = true; active;) {
      if (shared.barrier)
        barrier(shared.site);
      shared = {};
      active = false;
      for (Task& task : tasks_) {
        if (task.done())
          continue;
        active = true;
        resuming();
        turn(task, shared);
      }
    }
    tasks_.clear();
  }

  /// Coroutine frames ever allocated.
  [[nodiscard]] std::size_t frames() const noexcept { return pool_.allocations(); }
  [[nodiscard]] std::uint64_t suspensions() const noexcept { return suspensions_; }

 private:
  void turn(Task& task, Wait& shared) {
    task.resume();
    if (task.done())
      return;
    ++suspensions_;
    if (task.wait().barrier && !shared.barrier)
      shared = task.wait();
  }

  FramePool pool_;  // outlives the tasks
  std::vector<Task> tasks_;
  std::uint64_t suspensions_ = 0;
};

}  // namespace pmsim::blocks::index
