#include "pmsim/memory/stream.hpp"

namespace pmsim::memory {

namespace {

constexpr std::size_t kFirstRoom = 64;

}  // namespace

void Stream::extend() {
  if (size_ != 0 && size_ % kPollEvery == 0 && poll_)
    poll_();
  if (size_ == ops_.size())
    ops_.resize(std::max(kFirstRoom, 2 * ops_.size()));
  bound_ = std::min(ops_.size(), (size_ / kPollEvery + 1) * kPollEvery);
}

}  // namespace pmsim::memory
