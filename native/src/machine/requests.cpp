#include "pmsim/machine/requests.hpp"

#include <algorithm>
#include <utility>

#include "pmsim/memory/micro_op.hpp"

namespace pmsim::machine {

namespace {

constexpr std::size_t kPiece = 1 << 16;

}  // namespace

void RequestsInOrder::requested(const LineRequest& request, Picoseconds acts_at) {
  if (!wanted_ || memory::medium_of(request.line * memory::kLineBytes) != medium_)
    return;
  LineRequest placed = request;
  placed.line -= memory::medium_base(medium_) / memory::kLineBytes;
  placed.arrives -= origin_;
  held_.push_back({placed, number_++});
  std::push_heap(held_.begin(), held_.end(), ArrivesLater{});
  const Picoseconds reached = acts_at - origin_ - kHeldBack;
  while (!held_.empty() && held_.front().request.arrives <= reached)
    hand_on_first();
}

void RequestsInOrder::hand_on_first() {
  std::pop_heap(held_.begin(), held_.end(), ArrivesLater{});
  LineRequest& first = piece_.emplace_back(held_.back().request);
  held_.pop_back();
  latest_ = first.arrives = std::max(first.arrives, latest_);
  if (piece_.size() == kPiece) {
    sink_(piece_);
    piece_.clear();
  }
}

void RequestsInOrder::measurement_begins(Picoseconds now) {
  if (!restarts_)
    return;
  wanted_ = true;
  origin_ = now;
}

void RequestsInOrder::finish() {
  while (!held_.empty())
    hand_on_first();
  if (!piece_.empty())
    sink_(std::exchange(piece_, {}));
}

}  // namespace pmsim::machine
