#pragma once

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

/// Where a range can be changed; its lines, and that of the LSN, are resident and marked from here on.
template <memory::Memory M>
Address BufferManager<M>::change(M& memory, Page& page, std::uint32_t offset, std::uint32_t bytes,
                                 Change change, bool pin) {
  if (on_pmem(page.frame)) {
    Address full = migrated(memory, page);
    if (full == 0)
      full = migrate(memory, page);
    Page behind{full | kWholeTag, page.id};
    return this->change(memory, behind, offset, bytes, change, pin);
  }
  if (config_.page_access == PageAccess::kRedirected &&
      is_redirected(memory.template load<FrameState>(untagged(page.frame))))
    load_all(memory, page.frame);  // "it copies the page back from NVM into the corresponding slot" (IV.C)
  // The first line before the range: a mini page sorts its lines, so asking for it moves the others.
  if ((page.frame & kWholeTag) == 0)
    static_cast<void>(resident(memory, page, 0, kPageHeaderBytes));
  const Address at = resident(memory, page, offset, bytes);
  const Address frame = frame_behind(memory, page);
  const Address base = untagged(frame);
  const auto before = memory.template load<FrameState>(base);
  FrameState state = before;
  state.flags = static_cast<std::uint8_t>(state.flags | kSomeDirty | (change == Change::kMove ? kMoved : 0) |
                                          (pin ? kPinned : 0));
  if (is_mini(frame)) {
    const Address lines = base + MiniFrame::kHeaderBytes;
    const std::uint32_t first = static_cast<std::uint32_t>((at - lines) / kLineBytes);
    const std::uint32_t last = static_cast<std::uint32_t>((at + bytes - 1 - lines) / kLineBytes);
    const auto mask = static_cast<std::uint16_t>(((2U << last) - (1U << first)) | 1U);
    const auto dirty = memory.template load<std::uint16_t>(base + MiniFrame::kDirty);
    if ((dirty | mask) != dirty)
      memory.template store<std::uint16_t>(base + MiniFrame::kDirty, static_cast<std::uint16_t>(dirty | mask));
  } else if ((state.flags & kMasked) != 0) {
    if (state.dirty == 0)
      mark_lines(memory, base, offset, bytes);
  } else {
    state.dirty = 1;
  }
  if (std::memcmp(&state, &before, sizeof state) != 0)
    memory.template store<FrameState>(base, state);
  if (pin && ((before.flags & kPinned) == 0 || !pins_.is_mine(frame)))
    pins_.add(frame);
  return at;
}

template <memory::Memory M>
void BufferManager<M>::mark_lines(M& memory, Address full, std::uint32_t offset, std::uint32_t bytes) {
  const std::uint32_t first = offset / kLineBytes;
  const std::uint32_t last = (offset + bytes - 1) / kLineBytes;
  for (std::uint32_t word = 0; word <= last / 64; word = word == 0 && first / 64 > 1 ? first / 64 : word + 1) {
    std::uint64_t mask = word == 0 ? 1 : 0;  // the LSN
    if (word >= first / 64) {
      std::uint64_t range = ~std::uint64_t{0};
      if (word == first / 64)
        range &= ~std::uint64_t{0} << (first % 64);
      if (word == last / 64)
        range &= ~std::uint64_t{0} >> (63 - last % 64);
      mask |= range;
    }
    const Address at = full + layout_.dirty() + word * 8;
    const auto dirty = memory.template load<std::uint64_t>(at);
    if ((dirty | mask) != dirty)
      memory.template store<std::uint64_t>(at, dirty | mask);
  }
}

template <memory::Memory M>
Address BufferManager<M>::writable(M& memory, Page& page, std::uint32_t offset, std::uint32_t bytes,
                                   Change change) {
  return this->change(memory, page, offset, bytes, change, false);
}

template <memory::Memory M>
void BufferManager<M>::set_lsn(M& memory, Page& page, std::uint64_t lsn) {
  memory.template store<std::uint64_t>(change(memory, page, 0, 8, Change::kOverwrite, false), lsn);
}

/// After change(), when the first line is resident and marked.
template <memory::Memory M>
void BufferManager<M>::store_lsn(M& memory, Page& page, std::uint64_t lsn) {
  memory.template store<std::uint64_t>(resident(memory, page, 0, 8) + kLsnAt, lsn);
}

template <memory::Memory M>
std::uint64_t BufferManager<M>::lsn(M& memory, Page& page) {
  return memory.template load<std::uint64_t>(resident(memory, page, 0, 8) + kLsnAt);
}

template <memory::Memory M>
void BufferManager<M>::overwrite(M& memory, Page& page, std::uint32_t offset, std::span<const std::byte> bytes,
                                 std::uint64_t lsn) {
  if (bytes.empty())
    return;
  // Dw: to DRAM before a write, where the fix has not thrown it.
  if (on_pmem(page.frame) && migrated(memory, page) == 0 && (page.chosen || !chance(1)))
    return overwrite_on_pmem(memory, page, offset, bytes, lsn);
  const Address at =
      change(memory, page, offset, static_cast<std::uint32_t>(bytes.size()), Change::kOverwrite, true);
  memory.write(at, bytes);
  store_lsn(memory, page, lsn);
}

template <memory::Memory M>
void BufferManager<M>::move(M& memory, Page& page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes,
                            std::uint64_t lsn) {
  if (bytes == 0 || to == from)
    return;
  // Both ranges at once, so that asking for one does not move the other.
  const std::uint32_t first = std::min(to, from);
  const std::uint32_t all = std::max(to, from) + bytes - first;
  static_cast<void>(resident(memory, page, 0, kPageHeaderBytes));
  static_cast<void>(resident(memory, page, first, all));
  const Address destination = change(memory, page, to, bytes, Change::kMove, true);
  const Address start = resident(memory, page, first, all);
  const std::span<std::byte> content = std::span(scratch_).first(bytes);
  memory.read(start + (from - first), content);
  memory.write(destination, content);
  store_lsn(memory, page, lsn);
}

template <memory::Memory M>
void BufferManager<M>::clear_page(M& memory, Address full, PageId id) {
  constexpr blocks::page::Line kZero{};
  blocks::page::Line first{};
  std::memcpy(first.data() + kIdAt, &id, sizeof id);
  std::memcpy(first.data() + kMarkAt, &kPageMark, sizeof kPageMark);
  memory.write(data_of(full), first);
  for (std::uint32_t byte = kLineBytes; byte < config_.page_bytes; byte += kLineBytes)
    memory.write(data_of(full) + byte, kZero);
}

template <memory::Memory M>
FixedPage BufferManager<M>::allocate(M& memory) {
  const Address full = new_full(memory);
  PageId id = kNoPage;
  try {
    id = allocator_.take(memory);
  } catch (...) {
    dram_.give_slot(memory, full);
    throw;
  }
  ++counters_.fixes;
  ++counters_.pages_allocated;
  const Address target = config_.home == Home::kPmem ? place_.pmem + id * config_.page_bytes : 0;
  std::uint8_t flags = kSomeDirty | kFormatted;
  if (target != 0 && config_.cache_line_grained)
    flags |= kMasked;
  write_full_header(memory, full,
                    {.fixes = first_user(full), .resident = 1, .dirty = 1, .referenced = 1, .flags = flags}, id,
                    target);
  clear_page(memory, full, id);
  table_.insert(memory, id, full);
  return {full | kWholeTag, id};
}

template <memory::Memory M>
void BufferManager<M>::format(M& memory, Page& page, std::uint64_t lsn) {
  Address full = frame_behind(memory, page);
  if (on_pmem(page.frame)) {
    full = migrated(memory, page);
    if (full == 0)
      full = migrate(memory, page);
  }
  auto state = memory.template load<FrameState>(full);
  ensure((page.frame & kWholeTag) != 0 || on_pmem(page.frame) || is_redirected(state),
         "a page is formatted that is not fixed as a whole");
  clear_page(memory, full, page.id);
  memory.template store<std::uint64_t>(data_of(full) + kLsnAt, lsn);
  state.resident = 1;
  state.dirty = 1;
  state.flags = static_cast<std::uint8_t>(state.flags | kSomeDirty | kFormatted);
  memory.template store<FrameState>(full, state);
  pin(memory, page);
}

template <memory::Memory M>
void BufferManager<M>::release(M& memory, Page& page) {
  unfix(memory, page);
  pins_.add_release(page.id);
}

template <memory::Memory M>
void BufferManager<M>::pin(M& memory, Page& page) {
  // On PMem a page is pinned when it changes, which is when it migrates.
  if (on_pmem(page.frame) && migrated(memory, page) == 0)
    return;
  const Address frame = on_pmem(page.frame) ? migrated(memory, page) : frame_behind(memory, page);
  auto state = memory.template load<FrameState>(untagged(frame));
  if ((state.flags & kPinned) != 0) {
    if (!pins_.is_mine(frame))
      pins_.add(frame);
    return;
  }
  state.flags |= kPinned;
  memory.template store<FrameState>(untagged(frame), state);
  pins_.add(frame);
}

template <memory::Memory M>
void BufferManager<M>::unpin_all(M& memory, std::uint64_t age) {
  for (const Address frame : pins_.frames()) {
    auto state = memory.template load<FrameState>(untagged(frame));
    if (!pins_.is_others(frame))
      state.flags = static_cast<std::uint8_t>(state.flags & ~kPinned);
    memory.template store<FrameState>(untagged(frame), state);
    if (age != 0 && (state.flags & kSomeDirty) != 0)  // it may have been cleaned since, with the change durable
      note_first_change(memory, frame, age);
  }
  pins_.clear_frames();
  for (const PageId id : pins_.releases())
    drop(memory, id);
  pins_.clear_releases();
}

/// The page is nowhere any more, and its id is free. Idempotent.
template <memory::Memory M>
void BufferManager<M>::drop(M& memory, PageId id) {
  if (const IdTable::Found found = table_.find(memory, id)) {
    const HeldLatch<M> alone = changing(memory, id);
    Address frame = found.value;
    Address source = frame;
    if (!on_pmem(frame)) {
      const auto head = memory.template load<FrameHead>(untagged(frame));
      ensure(!is_used(frame, head.state) && head.state.children == 0, "a page is released that is in use");
      unswizzle(memory, frame, id);
      source = memory.template load<Address>(untagged(frame) + FullFrame::kPmem);
      if (is_mini(frame))
        dram_.give_mini(memory, frame);
      else
        dram_.give_slot(memory, frame);
    }
    if (config_.pmem_cache && source != 0) {
      if (source != frame)
        pmem_.uncover(memory, source);
      pmem_writer_.invalidate(memory, source);
      pmem_.give(memory, source);
    }
    table_.erase(memory, found);
    ++counters_.pages_released;
  } else if (allocator_.taken(memory, id)) {
    ++counters_.pages_released;
  }
  allocator_.set(memory, id, false);
}

}  // namespace pmsim::engines::buffer
