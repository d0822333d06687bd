#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/machine/histogram.hpp"
#include "pmsim/system/archive.hpp"

namespace pmsim::system {

/// What has happened to the requests of one tenant: totals and time windows, in bounded memory.
///
/// Windows begin with `window` ps. When there would be more than `kWindows`, neighbours are merged and windows
/// become twice as long: a run of any length keeps between half and all of them. A request counts in the window
/// of its end.
class Recorder {
 public:
  static constexpr std::size_t kWindows = 512;

  struct Window {
    machine::Histogram latency;
    PicosecondSum waited = 0;  ///< sum over its requests of the time until a worker was granted
    std::int64_t failed = 0;
  };

  explicit Recorder(Picoseconds window, Picoseconds begin = 0) : window_(window), begin_(begin), last_(begin) {}

  void submitted(Picoseconds at) {
    pass(at);
    ++in_system_;
    ++submitted_;
  }
  void completed(Picoseconds submitted_at, Picoseconds granted_at, Picoseconds at) {
    pass(at);
    --in_system_;
    Window& window = window_of(at);
    window.latency.record(at - submitted_at);
    window.waited += granted_at - submitted_at;
    total_.latency.record(at - submitted_at);
    total_.waited += granted_at - submitted_at;
  }
  /// A request that was lost.
  void failed(Picoseconds at) {
    pass(at);
    --in_system_;
    ++window_of(at).failed;
    ++total_.failed;
  }
  /// From now on only what comes counts (end of a warm-up): requests in the system stay in the system.
  void restart(Picoseconds at) {
    pass(at);
    total_ = Window{};
    windows_.clear();
    begin_ = at;
    submitted_ = 0;
    area_ = 0;
  }

  [[nodiscard]] const Window& total() const noexcept { return total_; }
  /// The windows up to `at`, and among them those at the end in which nothing has happened.
  [[nodiscard]] const std::vector<Window>& windows(Picoseconds at) {
    if (at > begin_)
      static_cast<void>(window_of(at - 1));
    return windows_;
  }
  [[nodiscard]] Picoseconds window() const noexcept { return window_; }
  [[nodiscard]] Picoseconds begin() const noexcept { return begin_; }
  [[nodiscard]] std::int64_t count_submitted() const noexcept { return submitted_; }
  [[nodiscard]] std::int64_t in_system() const noexcept { return in_system_; }
  /// Time average of the requests in the system up to `at`.
  [[nodiscard]] double mean_in_system(Picoseconds at) {
    pass(at);
    return at == begin_ ? 0.0 : static_cast<double>(area_) / static_cast<double>(at - begin_);
  }

  void archive(Archive& archive) {
    archive.value(window_);
    archive.value(begin_);
    archive.value(last_);
    archive.value(total_);
    archive.sequence(windows_);
    archive.value(submitted_);
    archive.value(in_system_);
    archive.value(area_);
  }

 private:
  __extension__ using Area = __int128;

  void pass(Picoseconds at) {
    area_ += static_cast<Area>(in_system_) * (at - last_);
    last_ = at;
  }
  Window& window_of(Picoseconds at) {
    auto index = static_cast<std::size_t>((at - begin_) / window_);
    while (index >= kWindows) {
      halve();
      index = static_cast<std::size_t>((at - begin_) / window_);
    }
    if (index >= windows_.size())
      windows_.resize(index + 1);
    return windows_[index];
  }
  void halve() {
    for (std::size_t index = 0; index < windows_.size(); ++index) {
      if (index % 2 == 0) {
        windows_[index / 2] = windows_[index];
        continue;
      }
      Window& into = windows_[index / 2];
      into.latency.merge(windows_[index].latency);
      into.waited += windows_[index].waited;
      into.failed += windows_[index].failed;
    }
    windows_.resize((windows_.size() + 1) / 2);
    window_ *= 2;
  }

  Picoseconds window_;
  Picoseconds begin_;
  Picoseconds last_;
  Window total_;
  std::vector<Window> windows_;
  std::int64_t submitted_ = 0;
  std::int64_t in_system_ = 0;
  Area area_ = 0;
};

}  // namespace pmsim::system
