#pragma once

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

// Which pages are dirty, and since when: what a checkpoint asks.

/// The frame that a dirty page's entry speaks of; 0: the page has been written back since.
template <memory::Memory M>
Address BufferManager<M>::frame_of(M& memory, const wal::DirtyQueue::Entry& entry) {
  const IdTable::Found found = table_.find(memory, entry.id);
  if (!found || on_pmem(found.value))
    return 0;
  const Address base = untagged(found.value);
  const auto head = memory.template load_dependent<FrameHead>(base);
  const bool current = (head.state.flags & kSomeDirty) != 0 &&
                       memory.template load<std::uint64_t>(base + kFirstChange) == entry.first;
  return current ? found.value : 0;
}

/// A page that the ended transaction has changed; it is dirty.
template <memory::Memory M>
void BufferManager<M>::note_first_change(M& memory, Address frame, std::uint64_t age) {
  const Address base = untagged(frame);
  if (memory.template load<std::uint64_t>(base + kFirstChange) != 0)
    return;
  memory.template store<std::uint64_t>(base + kFirstChange, age);
  dirty_.push(memory, {memory.template load<FrameHead>(base).id, age},
              [&](const wal::DirtyQueue::Entry& entry) { return frame_of(memory, entry) != 0; });
}

template <memory::Memory M>
std::uint64_t BufferManager<M>::write_back_before(M& memory, std::uint64_t lsn, std::uint64_t most) {
  for (bool has_waited = false; !dirty_.empty();) {
    const wal::DirtyQueue::Entry oldest = dirty_.front(memory);
    if (oldest.first >= lsn || most == 0)
      return oldest.first;
    if (const Address frame = frame_of(memory, oldest)) {
      const auto head = memory.template load<FrameHead>(untagged(frame));
      if ((head.state.flags & kPinned) != 0 && !has_waited) [[unlikely]] {
        call_hook(memory, first_line(frame));
        has_waited = true;  // all may have changed, and there may be older changes now
        continue;
      }
      write_back(memory, frame, head);
      ++counters_.pages_cleaned;
      --most;
    }
    dirty_.pop();
    has_waited = false;
  }
  return kNothingDirty;
}

template <memory::Memory M>
template <typename Visit>
void BufferManager<M>::for_each_frame(M& memory, Visit&& visit) {
  const std::uint64_t places = (std::uint64_t{1} << dram_.minis_per_slab()) - 1;
  for (std::uint64_t index = 0; index < dram_.fresh(); ++index) {
    const Address slot = dram_.slot(index);
    const auto head = memory.template load<FrameHead>(slot);
    if ((head.state.flags & kFree) != 0)
      continue;
    if ((head.state.flags & kSlab) == 0) {
      visit(slot, head);
      continue;
    }
    for (std::uint64_t used = ~dram_.free_mask(memory, slot) & places; used != 0; used &= used - 1) {
      const Address mini = dram_.mini(slot, static_cast<std::uint32_t>(std::countr_zero(used)));
      visit(mini, memory.template load<FrameHead>(untagged(mini)));
    }
  }
}

template <memory::Memory M>
void BufferManager<M>::write_back_all(M& memory) {
  for_each_frame(memory, [&](Address frame, const FrameHead& head) {
    if ((head.state.flags & kSomeDirty) != 0 && (head.state.flags & kPromoted) == 0) {
      ensure((head.state.flags & kPinned) == 0, "a checkpoint inside of a transaction");
      write_back(memory, frame, head);
    }
  });
  dirty_.clear();
}

template <memory::Memory M>
void BufferManager<M>::for_each_dirty(M& memory, const std::function<void(PageId, std::uint64_t)>& visit) {
  for_each_frame(memory, [&](Address frame, const FrameHead& head) {
    if ((head.state.flags & kSomeDirty) == 0 || (head.state.flags & kPromoted) != 0)
      return;
    const Address first = untagged(frame) + (is_mini(frame) ? MiniFrame::kHeaderBytes : layout_.header_bytes());
    visit(head.id, memory.template load<std::uint64_t>(first + kLsnAt));
  });
}

}  // namespace pmsim::engines::buffer
