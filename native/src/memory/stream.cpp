#include "pmsim/memory/stream.hpp"

#include <algorithm>
#include <new>

namespace pmsim::memory {

namespace {

constexpr std::size_t kFirstRoom = 64;

}  // namespace

void Stream::extend() {
  if (size_ != 0 && size_ % kPollEvery == 0)
    poll();
  if (size_ == room_) {
    const std::size_t room = std::max(kFirstRoom, 2 * room_);
    void* const larger = std::realloc(ops_.get(), room * sizeof(MicroOp));
    if (larger == nullptr)
      throw std::bad_alloc();
    static_cast<void>(ops_.release());
    ops_.reset(static_cast<MicroOp*>(larger));
    room_ = room;
  }
  bound_ = std::min(room_, (size_ / kPollEvery + 1) * kPollEvery);
}

}  // namespace pmsim::memory
