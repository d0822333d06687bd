#pragma once

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

template <memory::Memory M>
void BufferManager<M>::refuse_full_dram() const {
  throw CapacityError(
      "dram_bytes: all " + std::to_string(dram_.slots()) +
      " pages in DRAM are fixed, have swizzled children, or were changed by the open transaction; "
      "give it more, or make transactions smaller");
}

template <memory::Memory M>
void BufferManager<M>::write_full_header(M& memory, Address full, FrameState state, PageId id, Address source) {
  std::array<std::uint64_t, kMaxHeaderWords> words{};
  const FrameHead head{.state = state, .id = id};
  std::memcpy(words.data(), &head, sizeof head);
  words[FullFrame::kPmem / 8] = source;
  memory.write(full, std::as_bytes(std::span(words).first(layout_.header_bytes() / 8)));
  if (config_.debug_pages && state.resident == 0) [[unlikely]]
    forget_lines(memory, data_of(full), layout_.lines());
}

/// The slot of a new full page. Clock looks at full pages and at mini pages alike; of a slab it takes what was
/// not touched, and moves the rest to other slabs if they have room, so that a slab is not held by one warm
/// page.
template <memory::Memory M>
Address BufferManager<M>::new_full(M& memory) {
  {
    const HeldLatch<M> alone = replacing(memory);
    if (const Address slot = dram_.take_slot(memory))
      return slot;
  }
  for (std::uint64_t step = 0; step < 3 * dram_.slots(); ++step) {
    HeldLatch<M> alone = replacing(memory);
    const Address slot = dram_.slot(hand_);
    hand_ = hand_ + 1 == dram_.slots() ? 0 : hand_ + 1;
    hand_mini_ = 0;
    const auto head = memory.template load<FrameHead>(slot);
    if ((head.state.flags & kSlab) == 0) {
      if (!evictable(memory, slot, head))
        continue;
      alone.done();
      evict(memory, slot, head);
      return slot;
    }
    alone.done();
    if (sweep_slab(memory, slot))
      return dram_.take_slot(memory);
  }
  refuse_full_dram();
  return 0;
}

/// The place of a new mini page, tagged. Clock takes one mini page, or cuts the slot of a full page into slabs.
template <memory::Memory M>
Address BufferManager<M>::new_mini(M& memory) {
  Address slot = 0;
  {
    const HeldLatch<M> alone = replacing(memory);
    if (const Address mini = dram_.take_mini(memory))
      return mini;
    slot = dram_.take_slot(memory);
  }
  for (std::uint64_t step = 0; slot == 0; ++step) {
    if (step >= 3 * dram_.slots() * (dram_.minis_per_slab() + 1))
      refuse_full_dram();
    HeldLatch<M> alone = replacing(memory);
    const Address under = dram_.slot(hand_);
    const auto head = memory.template load<FrameHead>(under);
    const bool slab = (head.state.flags & kSlab) != 0;
    if (!slab) {
      if (evictable(memory, under, head)) {
        alone.done();
        evict(memory, under, head);
        slot = under;
      }
    } else {
      // No slab has room, so every place of this one is in use.
      const Address mini = dram_.mini(under, hand_mini_);
      const auto mini_head = memory.template load<FrameHead>(untagged(mini));
      const bool found = evictable(memory, mini, mini_head);
      alone.done();
      if (found)
        evict(memory, mini, mini_head);
      if (++hand_mini_ == dram_.minis_per_slab())
        hand_mini_ = 0;
      if (found) {
        if (hand_mini_ == 0)
          hand_ = hand_ + 1 == dram_.slots() ? 0 : hand_ + 1;
        return mini;
      }
    }
    if (!slab || hand_mini_ == 0) {
      hand_ = hand_ + 1 == dram_.slots() ? 0 : hand_ + 1;
      hand_mini_ = 0;
    }
  }
  dram_.make_slab(memory, slot);
  return dram_.take_mini(memory);
}

template <memory::Memory M>
bool BufferManager<M>::evictable(M& memory, Address frame, const FrameHead& head) {
  if (is_used(frame, head.state) || head.state.children != 0 || (head.state.flags & (kPinned | kFree)) != 0)
    return false;
  if (head.state.referenced == 0)
    return true;
  FrameState state = head.state;
  state.referenced = 0;
  memory.template store<FrameState>(untagged(frame), state);
  return false;
}

/// Empties a slab where that can be done. Returns whether it has become a free slot.
template <memory::Memory M>
bool BufferManager<M>::sweep_slab(M& memory, Address slab) {
  std::uint64_t warm = 0;
  bool held = false;
  const std::uint64_t places = (std::uint64_t{1} << dram_.minis_per_slab()) - 1;
  for (std::uint64_t used = ~dram_.free_mask(memory, slab) & places; used != 0; used &= used - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(used));
    const Address mini = dram_.mini(slab, index);
    const auto head = memory.template load<FrameHead>(untagged(mini));
    if (evictable(memory, mini, head)) {
      evict(memory, mini, head);
      if (dram_.give_mini(memory, mini))
        return true;
    } else if (is_used(mini, head.state)) {
      held = true;
    } else {
      warm |= std::uint64_t{1} << index;
    }
  }
  const std::uint64_t own = static_cast<std::uint64_t>(std::popcount(dram_.free_mask(memory, slab)));
  if (held || dram_.free_minis() - own < static_cast<std::uint64_t>(std::popcount(warm)))
    return false;
  dram_.retire_slab(memory, slab);
  for (; warm != 0; warm &= warm - 1)
    relocate(memory, dram_.mini(slab, static_cast<std::uint32_t>(std::countr_zero(warm))));
  dram_.give_slot(memory, slab);
  return true;
}

/// Moves a mini page that nobody has fixed into another slab. It may be pinned: it stays in DRAM.
template <memory::Memory M>
void BufferManager<M>::relocate(M& memory, Address mini) {
  ++counters_.mini_relocated;
  const Address to = dram_.take_mini(memory);
  const auto head = memory.template load<FrameHead>(untagged(mini));
  const HeldLatch<M> alone = changing(memory, head.id);
  const std::uint32_t bytes = MiniFrame::kHeaderBytes + head.state.resident * kLineBytes;
  for (std::uint32_t byte = 0; byte < bytes; byte += kLineBytes) {
    blocks::page::Line content;
    memory.read(untagged(mini) + byte, content);
    memory.write(untagged(to) + byte, content);
  }
  if (config_.debug_pages) [[unlikely]]
    forget_lines(memory, untagged(to) + bytes, MiniFrame::kCapacity - head.state.resident);
  table_.assign(memory, table_.find(memory, head.id), to);
  if ((head.state.flags & kPinned) != 0)
    pins_.replace(mini, to);
  if (const auto parent = memory.template load<Address>(parent_at(to))) {
    const HeldLatch<M> above = changing_frame(memory, parent);
    memory.template store<Swip>(data_of(parent) + memory.template load<std::uint16_t>(parent_offset_at(to)),
                                kSwizzled | to);
  }
}

template <memory::Memory M>
bool BufferManager<M>::is_mini_place(M& memory, Address slot, Address frame) {
  if ((memory.template load<FrameHead>(slot).state.flags & kSlab) == 0)
    return false;
  for (std::uint32_t index = 0; index < dram_.minis_per_slab(); ++index) {
    if (dram_.mini(slot, index) == frame)
      return (dram_.free_mask(memory, slot) >> index & 1) == 0;
  }
  return false;
}

/// Transition 3: out of DRAM.
template <memory::Memory M>
void BufferManager<M>::evict(M& memory, Address frame, const FrameHead& head) {
  ++counters_.evictions_dram;
  const HeldLatch<M> alone = changing(memory, head.id);
  unswizzle(memory, frame, head.id);
  const auto source = memory.template load<Address>(untagged(frame) + FullFrame::kPmem);
  if (source == 0)
    return admit_or_deny(memory, frame, head);
  if ((head.state.flags & kSomeDirty) != 0)
    write_back(memory, frame, head);
  const IdTable::Found found = table_.find(memory, head.id);
  if (config_.pmem_cache) {
    table_.assign(memory, found, source);  // its copy on PMem is found from now on (section 4.3)
    pmem_.uncover(memory, source);
  } else {
    table_.erase(memory, found);
  }
}

/// The set protects the pages on PMem; as long as it has free frames there is nobody to protect: "for workloads
/// fitting into NVM, the third layer (SSD) is not used" (section 4.3).
template <memory::Memory M>
bool BufferManager<M>::is_admitted(M& memory, PageId id) {
  if (config_.direct)
    return chance(3);
  return pmem_.has_free() || admission_.consider(memory, id);
}

/// A page that is not on PMem leaves DRAM: transition 4, to PMem, or 5, to the SSD alone.
template <memory::Memory M>
void BufferManager<M>::admit_or_deny(M& memory, Address full, const FrameHead& head) {
  const bool dirty = (head.state.flags & kSomeDirty) != 0;
  if (config_.pmem_cache && is_admitted(memory, head.id)) {
    const memory::InSection pages(memory, memory::Section::kPages);
    if (const Address frame = take_pmem(memory)) {
      ++counters_.admissions;
      ++counters_.pages_written_pmem;
      counters_.lines_written_back += layout_.lines();
      if (dirty)
        call_hook(memory, data_of(full));
      pmem_writer_.install(memory, frame, data_of(full), kPageMark | (dirty ? kNewerThanSsd : 0));
      pmem_.store(
          memory, frame,
          Descriptor{.id = head.id, .referenced = 1, .flags = dirty ? PmemPool::kDirty : std::uint8_t{0}});
      return table_.assign(memory, table_.find(memory, head.id), frame);
    }
    ++counters_.admission_blocked;
  } else if (config_.pmem_cache) {
    ++counters_.denials;
  }
  if (dirty) {
    call_hook(memory, data_of(full));
    write_to_ssd(memory, head.id, data_of(full));
  }
  table_.erase(memory, table_.find(memory, head.id));
}

/// A frame of the PMem cache without a page: a free one, or transition 6. 0: all are in use, or DRAM has frames
/// of nearly all their pages.
///
/// A page's descriptor knows of both copies, as Spitfire's (Zhou et al., SIGMOD 2021), so that no page table is
/// asked at each step. Spitfire evicts a page from NVM whatever DRAM has of it, and reads it from the SSD again
/// when a line is missing. Here it stays, so that missing lines are always on PMem, and what comes from the SSD
/// goes to DRAM alone until DRAM's clock, which that moves, has given up enough of its frames.
template <memory::Memory M>
Address BufferManager<M>::take_pmem(M& memory) {
  {
    const HeldLatch<M> alone = replacing(memory);
    if (const Address frame = pmem_.take(memory))
      return frame;
  }
  if (!pmem_.can_replace())
    return 0;
  for (std::uint64_t step = 0; step < 2 * pmem_.count() + 1; ++step) {
    HeldLatch<M> alone = replacing(memory);
    const Address frame = pmem_.advance();
    Descriptor descriptor = pmem_.load(memory, frame);
    if (descriptor.referenced == PmemPool::kInDram || frame == guarded_ || is_used(frame, descriptor))
      continue;  // of the first, lines are in DRAM, the others only here
    if (descriptor.referenced != 0) {
      descriptor.referenced = 0;
      pmem_.store(memory, frame, descriptor);
      continue;
    }
    alone.done();
    const IdTable::Found found = table_.find(memory, descriptor.id);
    ensure(on_pmem(found.value), "a page is evicted from PMem while DRAM has a frame of it");
    ++counters_.evictions_pmem;
    const HeldLatch<M> changed = changing(memory, descriptor.id);
    if ((descriptor.flags & PmemPool::kDirty) != 0)
      write_to_ssd(memory, descriptor.id, frame);
    pmem_writer_.invalidate(memory, frame);
    table_.erase(memory, found);
    return frame;
  }
  return 0;
}

/// Brings the changes of a frame in DRAM to the tier that survives. Durable on return; the frame is clean.
template <memory::Memory M>
void BufferManager<M>::write_back(M& memory, Address frame, FrameHead head) {
  const memory::InSection pages(memory, memory::Section::kPages);
  const Address base = untagged(frame);
  const Address first = first_line(frame);
  call_hook(memory, first);
  const auto target = memory.template load<Address>(base + FullFrame::kPmem);
  if (target != 0) {
    write_to_pmem(memory, frame, head, target);
  } else {
    if (head.state.children != 0)
      unswizzle_range(memory, base, 0, config_.page_bytes);
    write_to_ssd(memory, head.id, first);
  }
  head.state = memory.template load<FrameState>(base);
  if (!is_mini(frame))
    head.state.dirty = 0;
  head.state.flags = static_cast<std::uint8_t>(head.state.flags & ~(kSomeDirty | kMoved | kFormatted));
  memory.template store<FrameState>(base, head.state);
  memory.template store<std::uint64_t>(base + kFirstChange, 0);
}

template <memory::Memory M>
void BufferManager<M>::write_to_pmem(M& memory, Address frame, const FrameHead& head, Address target) {
  const Address base = untagged(frame);
  LineMask lines;
  std::array<Address, MiniFrame::kCapacity> slot_of{};  // by rank, of a mini page
  std::uint32_t slots_written = 0;
  if (is_mini(frame)) {
    const auto slots = memory.template load<MiniSlots>(base + MiniFrame::kSlots);
    const auto dirty = memory.template load<std::uint16_t>(base + MiniFrame::kDirty);
    for (std::uint32_t slot = 0; slot < head.state.resident; ++slot) {
      if ((dirty >> slot & 1U) == 0)
        continue;
      lines.set(slots.line[slot]);
      slot_of[slots_written++] = base + MiniFrame::kHeaderBytes + slot * kLineBytes;
    }
    memory.template store<std::uint16_t>(base + MiniFrame::kDirty, 0);
  } else if (head.state.dirty != 0) {
    for (std::uint32_t word = 0; word < layout_.lines() / 64; ++word)
      lines.set_word(word, ~std::uint64_t{0});
  } else {
    for (std::uint32_t word = 0; word < layout_.lines() / 64; ++word)
      lines.set_word(word, memory.template load<std::uint64_t>(base + layout_.dirty() + word * 8));
  }
  if (!is_mini(frame) && (head.state.flags & kMasked) != 0) {
    for (std::uint32_t word = 0; word < layout_.lines() / 64; ++word)
      memory.template store<std::uint64_t>(base + layout_.dirty() + word * 8, 0);
  }
  if (head.state.children != 0)
    lines.for_each([&](std::uint32_t line) { unswizzle_range(memory, base, line * kLineBytes, kLineBytes); });

  // Lines are asked for in ascending order, the first one also out of turn: that of a mini page is in slot 0.
  std::uint32_t rank = 0;
  std::uint32_t last = 0;
  const Address content =
      config_.page_access == PageAccess::kSystemCall ? begin_write_call(memory, data_of(base)) : data_of(base);
  counters_.page_copies_out += config_.cache_line_grained ? 0 : 1;
  const auto source = [&](std::uint32_t line) -> Address {
    if (!is_mini(frame))
      return content + line * kLineBytes;
    if (line == 0)
      return slot_of[0];
    if (line <= last)
      rank = 0;
    last = line;
    if (rank == 0)
      rank = 1;
    return slot_of[rank++];
  };
  const std::uint64_t mark = kPageMark | (config_.pmem_cache ? kNewerThanSsd : 0);
  if ((head.state.flags & kMoved) != 0 && (head.state.flags & kFormatted) == 0) {
    ++counters_.micro_log_writes;
    pmem_writer_.replace(memory, target, lines, mark, source);
  } else {
    pmem_writer_.in_place(memory, target, lines, mark, source);
  }
  ++counters_.pages_written_pmem;
  counters_.lines_written_back += lines.count();
  if (config_.pmem_cache)
    set_newer_than_ssd(memory, target);
}

/// The same of write(), in the opposite direction. Pages of such a manager are written whole.
template <memory::Memory M>
Address BufferManager<M>::begin_write_call(M& memory, Address data) {
  cpu_work(memory, config_.system_call_cycles);
  if (!config_.kernel_buffer)
    return data;
  memory.copy_lines(data, staging_, layout_.lines());
  ++counters_.page_copies_out;
  return staging_;
}

template <memory::Memory M>
void BufferManager<M>::set_newer_than_ssd(M& memory, Address frame) {
  std::uint8_t flags = PmemPool::kDirty;
  if (config_.direct)
    flags |= pmem_.load(memory, frame).flags;
  pmem_.set_flags(memory, frame, flags);
}

template <memory::Memory M>
void BufferManager<M>::write_to_ssd(M& memory, PageId id, Address from) {
  const memory::InSection pages(memory, memory::Section::kPages);
  ++counters_.pages_written_ssd;
  ssd_.write(memory, id, from);
}

}  // namespace pmsim::engines::buffer
