#pragma once

#include <array>
#include <exception>
#include <functional>
#include <semaphore>
#include <thread>

namespace pmsim::crash {

/// Two threads of a program whose power fails. One of them runs at a time, on a thread of the host each, so
/// that either can stop in the middle of an algorithm. When they change is the program's affair: the same
/// program always changes at the same places.
class Turns {
 public:
  /// Runs both to their ends, `first` until it yields or ends. What they throw is thrown here, `first`'s before
  /// `second`'s.
  void run(const std::function<void()>& first, const std::function<void()>& second) {
    running_ = 0;
    ended_ = {};
    failures_ = {};
    std::thread host([&] {
      go_[1].acquire();
      part(second);
    });
    part(first);
    host.join();
    for (const std::exception_ptr& failure : failures_) {
      if (failure)
        std::rethrow_exception(failure);
    }
  }

  /// 0 or 1.
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// The other one runs until it yields or ends. Returns false, at once, where it has ended.
  bool yield() {
    const std::size_t mine = running_;
    if (ended_[1 - mine])
      return false;
    resume(1 - mine);
    go_[mine].acquire();
    return true;
  }

 private:
  void part(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      failures_[running_] = std::current_exception();
    }
    ended_[running_] = true;
    if (!ended_[1 - running_])
      resume(1 - running_);
  }
  void resume(std::size_t other) {
    running_ = other;
    go_[other].release();
  }

  std::array<std::binary_semaphore, 2> go_{std::binary_semaphore(0), std::binary_semaphore(0)};
  std::size_t running_ = 0;
  std::array<bool, 2> ended_{};
  std::array<std::exception_ptr, 2> failures_{};
};

}  // namespace pmsim::crash
