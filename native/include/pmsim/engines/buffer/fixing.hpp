#pragma once

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

template <memory::Memory M>
FixedPage BufferManager<M>::fix(M& memory, RootRef& root, Access access) {
  ++counters_.fixes;
  if (config_.pointer_swizzling && root.frame != 0) {
    // The frame may hold something else by now: its head tells, whatever it holds.
    const auto head = memory.template load<FrameHead>(root.frame);
    if (head.id == root.id) {
      ++counters_.dram_hits;
      ++counters_.swizzled_fixes;
      return {fix_frame(memory, root.frame, head, access), root.id};
    }
  }
  const Page page{fix_by_id(memory, root.id, access), root.id, access == Access::kChanged};
  root.frame =
      config_.pointer_swizzling && !on_pmem(page.frame) && !is_mini(page.frame) ? untagged(page.frame) : 0;
  return page;
}

template <memory::Memory M>
FixedPage BufferManager<M>::fix_page(M& memory, PageId id, Access access) {
  ++counters_.fixes;
  return {fix_by_id(memory, id, access), id, access == Access::kChanged};
}

template <memory::Memory M>
FixedPage BufferManager<M>::fix_child(M& memory, Page& parent, std::uint32_t offset, Access access) {
  ++counters_.fixes;
  const Address at = resident(memory, parent, offset, sizeof(Swip));
  const auto swip = memory.template load<Swip>(at);
  if ((swip & kSwizzled) != 0) {
    const Address frame = swip & ~kSwizzled;
    const auto head = memory.template load_dependent<FrameHead>(untagged(frame));
    ++counters_.dram_hits;
    ++counters_.swizzled_fixes;
    return {fix_frame(memory, frame, head, access), head.id};
  }
  const std::uint64_t misses = counters_.dram_misses;
  const Address frame = fix_by_id(memory, swip, access);
  if (page_latches_.any() && counters_.dram_misses != misses) [[unlikely]]
    look_again(memory, parent.id);
  // A frame on PMem may be used by nobody's leave, and what is there must survive a crash: no pointers to or in
  // it.
  if (config_.pointer_swizzling && !on_pmem(frame) && !on_pmem(parent.frame) && !is_mini(parent.frame))
    swizzle(memory, parent, offset, at, frame & ~kWholeTag);
  return {frame, swip, access == Access::kChanged};
}

/// A page has been brought in while its parent was read optimistically: it is looked for again from there, and
/// what happened to the parent meanwhile does not matter.
template <memory::Memory M>
void BufferManager<M>::look_again(M& memory, PageId parent) {
  const Address latch = page_latches_.of(parent);
  if (memory::LatchWord::admits(memory.template load<std::uint64_t>(latch), LatchMode::kOptimistic))
    static_cast<void>(memory.acquire(latch, LatchMode::kOptimistic));
}

template <memory::Memory M>
Address BufferManager<M>::fix_by_id(M& memory, PageId id, Access access) {
  ++counters_.page_table_lookups;
  IdTable::Found found = table_.find(memory, id);
  if (found && !on_pmem(found.value)) {
    const auto head = memory.template load_dependent<FrameHead>(untagged(found.value));
    ++(is_redirected(head.state) ? counters_.direct_fixes : counters_.dram_hits);
    return fix_frame(memory, found.value, head, access);
  }
  ++counters_.dram_misses;
  if (config_.home == Home::kPmem) {
    const Address source = place_.pmem + id * config_.page_bytes;
    ensure(id < config_.home_pages(), "a page id beyond the home tier");
    return load_from_pmem(memory, id, source, found, table_.generation(), access);
  }
  if (!found && config_.direct && chance(2)) {  // Nr: from the SSD to PMem
    if (const Address frame = take_pmem(memory)) {
      const memory::InSection pages(memory, memory::Section::kPages);
      ++counters_.pages_ssd_to_pmem;
      ssd_.read(memory, id, staging_);
      memory.template store<std::uint64_t>(staging_ + kIdAt, id);  // a page that was never written
      pmem_writer_.install(memory, frame, staging_, kPageMark);
      pmem_.store(memory, frame, Descriptor{.id = id, .referenced = 1});
      table_.insert(memory, id, frame);
      found = table_.find(memory, id);
    }
  }
  if (!found)
    return load_from_ssd(memory, id);
  if (config_.direct) {
    const Descriptor descriptor = pmem_.load(memory, found.value);
    // From PMem to DRAM: Dw where it is going to be changed, else Dr. One of them: reads may migrate while
    // writes stay.
    if (!chance(access == Access::kChanged ? 1 : 0))
      return fix_on_pmem(memory, found.value, descriptor);
    if (is_used(found.value, descriptor)) {
      const Page page{found.value, id};
      fix_on_pmem(memory, found.value, descriptor);
      Address full = 0;
      try {
        full = migrate(memory, page);
      } catch (const CapacityError&) {
        unfix_on_pmem(memory, found.value);
        throw;
      }
      const auto head = memory.template load<FrameHead>(full);
      const Address frame = fix_frame(memory, full, head, access);
      unfix_on_pmem(memory, found.value);
      return frame;
    }
  }
  return load_from_pmem(memory, id, found.value, found, table_.generation(), access);
}

template <memory::Memory M>
Address BufferManager<M>::fix_frame(M& memory, Address frame, FrameHead head, Access access) {
  const bool touches = config_.count_fixes || head.state.referenced == 0;
  add_user(frame, head.state);
  head.state.referenced = 1;
  if (touches)
    memory.template store<FrameState>(untagged(frame), head.state);
  if (!is_mini(frame)) {
    if (config_.whole_pages())
      return frame | kWholeTag;
    if (access != Access::kFull || is_redirected(head.state))
      return frame;
    if (head.state.resident == 0)
      load_all(memory, frame);
    return frame | kWholeTag;
  }
  if (access != Access::kFull)
    return frame;
  // All of a page does not fit into a mini page.
  Address full = 0;
  if ((head.state.flags & kPromoted) != 0) {
    full = memory.template load<Address>(untagged(frame) + MiniFrame::kFull);
  } else {
    try {
      full = promote(memory, frame);
    } catch (const CapacityError&) {
      unfix_mini(memory, frame, memory.template load<FrameState>(untagged(frame)));
      throw;
    }
  }
  auto state = memory.template load<FrameState>(full);
  add_user(full, state);
  if (config_.count_fixes)
    memory.template store<FrameState>(full, state);
  unfix_mini(memory, frame, memory.template load<FrameState>(untagged(frame)));
  if (state.resident == 0)
    load_all(memory, full);
  return full | kWholeTag;
}

template <memory::Memory M>
Address BufferManager<M>::load_from_pmem(M& memory, PageId id, Address source, const IdTable::Found& found,
                                         std::uint64_t generation, Access access) {
  ++counters_.pages_loaded_pmem;
  const bool mini = config_.mini_pages && access != Access::kFull;
  guarded_ = source;
  Address frame = 0;
  try {
    frame = mini ? new_mini(memory) : new_full(memory);
  } catch (const CapacityError&) {
    guarded_ = 0;
    throw;
  }
  guarded_ = 0;
  if (mini) {
    ++counters_.mini_allocated;
    std::array<std::uint64_t, 8> words{};
    const FrameHead head{.state = {.fixes = first_user(frame), .referenced = 1}, .id = id};
    std::memcpy(words.data(), &head, sizeof head);
    words[MiniFrame::kPmem / 8] = source;
    memory.write(untagged(frame), std::as_bytes(std::span(words)));
    if (config_.debug_pages) [[unlikely]]
      forget_lines(memory, untagged(frame) + MiniFrame::kHeaderBytes, MiniFrame::kCapacity);
  } else {
    const std::uint8_t flags = config_.cache_line_grained ? kMasked : 0;
    write_full_header(memory, frame, {.fixes = first_user(frame), .referenced = 1, .flags = flags}, id, source);
  }
  if (!found) {
    table_.insert(memory, id, frame);
  } else {
    // Making room may have moved the entry.
    table_.assign(memory, table_.generation() == generation ? found : table_.find(memory, id), frame);
  }
  if (config_.pmem_cache)
    pmem_.cover(memory, source);
  if (mini || (access != Access::kFull && config_.cache_line_grained) ||
      config_.page_access == PageAccess::kRedirected)
    return frame;
  load_all(memory, frame);
  return frame | kWholeTag;
}

template <memory::Memory M>
Address BufferManager<M>::load_from_ssd(M& memory, PageId id) {
  ensure(id < config_.home_pages(), "a page id beyond the home tier");
  ++counters_.pages_loaded_ssd;
  const Address frame = new_full(memory);
  write_full_header(memory, frame, {.fixes = first_user(frame), .resident = 1, .referenced = 1}, id, 0);
  {
    const memory::InSection pages(memory, memory::Section::kPages);
    ssd_.read(memory, id, data_of(frame));
  }
  table_.insert(memory, id, frame);
  return frame | kWholeTag;
}

template <memory::Memory M>
void BufferManager<M>::unfix(M& memory, Page& page) {
  if (on_pmem(page.frame))
    return unfix_on_pmem(memory, page.frame);
  if (config_.debug_pages) [[unlikely]]
    check_use(memory, page);
  const Address base = untagged(page.frame);
  if (!config_.count_fixes && !is_mini(page.frame))
    return users_.remove(base);
  auto state = memory.template load<FrameState>(base);
  if (is_mini(page.frame))
    return unfix_mini(memory, page.frame, state);
  remove_user(base, state);
  memory.template store<FrameState>(base, state);
}

template <memory::Memory M>
void BufferManager<M>::unfix_mini(M& memory, Address mini, FrameState state) {
  const Address base = untagged(mini);
  remove_user(mini, state);
  if (config_.count_fixes)
    memory.template store<FrameState>(base, state);
  if ((state.flags & kPromoted) == 0 || is_used(mini, state))
    return;
  const HeldLatch<M> alone = changing_frame(memory, mini);
  // The last user of the wrapper is gone. Who still points to it is the parent's swip (section 3.3).
  const auto full = memory.template load<Address>(base + MiniFrame::kFull);
  const auto parent = memory.template load<Address>(base + MiniFrame::kParent);
  if (parent != 0) {
    const HeldLatch<M> above = changing_frame(memory, parent);
    const auto offset = memory.template load<std::uint16_t>(base + MiniFrame::kParentOffset);
    memory.template store<Swip>(data_of(parent) + offset, kSwizzled | full);
    memory.template store<Address>(parent_at(full), parent);
    memory.template store<std::uint16_t>(parent_offset_at(full), offset);
  }
  auto behind = memory.template load<FrameState>(full);
  remove_user(full, behind);
  if (config_.count_fixes)
    memory.template store<FrameState>(full, behind);
  dram_.give_mini(memory, mini);
}

}  // namespace pmsim::engines::buffer
