#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "pmsim/core/time.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::machine {

/// A line that is read from main memory or written to it. Python reads these 24 bytes as they are.
struct LineRequest {
  enum class Operation : std::uint32_t { kRead, kWrite };
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  Picoseconds arrives = 0;  ///< at the controller
  std::uint64_t line = 0;
  std::uint32_t thread = kNobody;  ///< has asked for it: not for hardware prefetches and evicted lines
  Operation operation = Operation::kRead;
};
static_assert(sizeof(LineRequest) == 24);

/// Who wants to know what is asked of main memory: each line once, wherever it may have to wait then.
class RequestListener {
 public:
  RequestListener() = default;
  RequestListener(const RequestListener&) = delete;
  RequestListener& operator=(const RequestListener&) = delete;
  virtual ~RequestListener() = default;

  /// Somebody acts at `acts_at`, which does not decrease from call to call. The request arrives later, or up to
  /// some microseconds before: a front end that has waited goes on where it stopped.
  virtual void requested(const LineRequest& request, Picoseconds acts_at) = 0;
  /// What has been requested before was for the warm-up.
  virtual void measurement_begins(Picoseconds now) = 0;
};

/// Hands on the requests to one medium in the order of their arrival, those that arrive together in the order
/// in which they were made. Keeps those of the last kHeldBack, some hundred thousand at most; one that is said
/// to have arrived before that arrives with the last one that was handed on.
class RequestsInOrder final : public RequestListener {
 public:
  using Sink = std::function<void(std::span<const LineRequest>)>;
  static constexpr Picoseconds kHeldBack = 100'000'000;

  /// Lines are counted from the start of the medium, times from the start of the run or, if only what is
  /// measured is wanted, from there on. `sink` gets them piece by piece.
  RequestsInOrder(memory::Medium medium, bool measured_only, Sink sink)
      : medium_(medium), sink_(std::move(sink)), wanted_(!measured_only), restarts_(measured_only) {}

  void requested(const LineRequest& request, Picoseconds acts_at) override;
  void measurement_begins(Picoseconds now) override;
  /// Hands on what is left: nothing more will be requested.
  void finish();

 private:
  struct Held {
    LineRequest request;
    std::uint64_t number;
  };
  struct ArrivesLater {
    bool operator()(const Held& left, const Held& right) const noexcept {
      return left.request.arrives != right.request.arrives ? left.request.arrives > right.request.arrives
                                                           : left.number > right.number;
    }
  };
  void hand_on_first();

  memory::Medium medium_;
  Sink sink_;
  bool wanted_;    ///< what is requested now
  bool restarts_;  ///< at the measurement
  Picoseconds origin_ = 0;
  Picoseconds latest_ = 0;  ///< of those handed on
  std::uint64_t number_ = 0;
  std::vector<Held> held_;  ///< heap
  std::vector<LineRequest> piece_;
};

}  // namespace pmsim::machine
