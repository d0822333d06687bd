#include <algorithm>

#include "pmsim/machine/virtual_thread.hpp"

/// Transfers to and from the block device, alone and in groups.
namespace pmsim::machine {

using memory::OpKind;

void VirtualThread::stand_for_device(Picoseconds until) noexcept {
  idle_ += std::max<Picoseconds>(until - now_, 0);
  stand(until, Cause::kDevice);
}

bool VirtualThread::dispatch_block_io(const TimedOp& op, Picoseconds limit) {
  if (!drain_window(limit)) {
    return false;
  }
  BlockDevice& device = memory_->block_device(now_);
  if (op.kind == code(OpKind::kBlockRead)) {
    stand_for_device(device.read(op.line, op.instructions, now_));
  } else if (op.kind == code(OpKind::kBlockWrite)) {
    stand_for_device(device.write(op.line, op.instructions, now_));
  } else {
    stand_for_device(device.flush(now_));
    block_flushed();
  }
  return true;
}

bool VirtualThread::dispatch_block_gather(const TimedOp& op, Picoseconds limit) {
  if (!make_room(1, limit)) {
    return false;
  }
  ++counters_->block_gathers;
  traffic_->group.gather(id_, op.line, op.instructions);
  step(1);
  return true;
}

/// Who leads a group gives each command when the one before has come back, so that the device sees those of all
/// threads in the order of time.
bool VirtualThread::dispatch_block_commit(Picoseconds limit) {
  GroupCommit& group = traffic_->group;
  GroupCommit::Range range;
  switch (leading_) {
    case Leading::kNothing:
      if (!drain_window(limit)) {
        return false;
      }
      if (group.is_durable(id_)) {
        break;
      }
      if (group.is_under_way()) {
        group.wait(id_);
        group_asked_ = now_;
        blocked_ = true;
        blocked_by_ = Cause::kDevice;
        front_key_ = kNever;
        return false;
      }
      ++counters_->block_groups;
      range = group.begin();
      return lead(Leading::kWrite, memory_->block_device(now_).write(range.address, range.bytes, now_));
    case Leading::kWrite:
      return lead(Leading::kFlush, memory_->block_device(now_).flush(now_));
    case Leading::kFlush:
      leading_ = Leading::kNothing;
      group.end(now_);
      interrupted_ = true;  // others go on from here
      break;
  }
  block_flushed();
  return true;
}

bool VirtualThread::lead(Leading command, Picoseconds until) noexcept {
  leading_ = command;
  stand_for_device(until);
  front_key_ = now_;
  return false;
}

void VirtualThread::block_flushed() noexcept {
  ++block_flushes_;
  block_flush_done_ = now_;
}

void VirtualThread::group_ended(const GroupCommit::Woken& woken) {
  // It has been looking at a word that the leader writes.
  stand_for_device(woken.at + group_seen_);
  counters_->group_wait_ps += now_ - group_asked_;
  blocked_ = false;
  front_key_ = now_;
}

}  // namespace pmsim::machine
