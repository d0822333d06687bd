#pragma once

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

template <memory::Memory M>
void BufferManager<M>::swizzle(M& memory, const Page& above, std::uint32_t offset, Address swip_at,
                               Address child) {
  ++counters_.swizzles;
  const HeldLatch<M> alone = changing(memory, above.id);
  const Address parent = untagged(above.frame);
  memory.template store<Swip>(swip_at, kSwizzled | child);
  auto state = memory.template load<FrameState>(parent);
  ++state.children;
  memory.template store<FrameState>(parent, state);
  memory.template store<Address>(parent_at(child), parent);
  memory.template store<std::uint16_t>(parent_offset_at(child), static_cast<std::uint16_t>(offset));
}

/// Turns the pointer that the parent has to this frame back into the page's id, if there is one.
template <memory::Memory M>
void BufferManager<M>::unswizzle(M& memory, Address frame, PageId id) {
  const auto parent = memory.template load<Address>(parent_at(frame));
  if (parent == 0)
    return;
  ++counters_.unswizzles;
  const HeldLatch<M> alone = changing_frame(memory, parent);
  const auto offset = memory.template load<std::uint16_t>(parent_offset_at(frame));
  memory.template store<Swip>(data_of(parent) + offset, id);
  auto state = memory.template load<FrameState>(parent);
  --state.children;
  memory.template store<FrameState>(parent, state);
  memory.template store<Address>(parent_at(frame), 0);
}

template <memory::Memory M>
void BufferManager<M>::unswizzle_children(M& memory, Page& page, std::uint32_t offset, std::uint32_t count) {
  if (!config_.pointer_swizzling || on_pmem(page.frame) || is_mini(page.frame))
    return;
  const Address parent = untagged(page.frame);
  if (memory.template load<FrameState>(parent).children == 0)
    return;
  for (std::uint32_t child = 0; child < count; ++child) {
    const auto swip = memory.template load<Swip>(resident(memory, page, offset + child * 8, sizeof(Swip)));
    if ((swip & kSwizzled) == 0)
      continue;
    const Address frame = swip & ~kSwizzled;
    unswizzle(memory, frame, memory.template load_dependent<FrameHead>(untagged(frame)).id);
  }
}

/// Before bytes of an inner page go to another tier. The manager does not know where in the page the swips are:
/// a word is one if it looks like a pointer to a frame, and that frame says that this word points to it.
template <memory::Memory M>
void BufferManager<M>::unswizzle_range(M& memory, Address parent, std::uint32_t offset, std::uint32_t bytes) {
  const Address pool = dram_.slot(0);
  const Address end = dram_.slot(dram_.fresh());
  for (std::uint32_t at = offset; at < offset + bytes; at += sizeof(Swip)) {
    const auto swip = memory.template load<Swip>(data_of(parent) + at);
    const Address frame = swip & ~kSwizzled;
    if ((swip & kSwizzled) == 0 || untagged(frame) < pool || untagged(frame) >= end)
      continue;
    // It may be other data that happens to look like this; then reading the pool at this place does no harm.
    const Address slot = pool + (untagged(frame) - pool) / dram_.slot_bytes() * dram_.slot_bytes();
    if (is_mini(frame) ? !is_mini_place(memory, slot, frame) : frame != slot)
      continue;
    const auto head = memory.template load<FrameHead>(untagged(frame));
    if (head.id != kNoPage && memory.template load<Address>(parent_at(frame)) == parent &&
        memory.template load<std::uint16_t>(parent_offset_at(frame)) == at)
      unswizzle(memory, frame, head.id);
  }
}

}  // namespace pmsim::engines::buffer
