#pragma once

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

/// Instructions beside the accesses. They matter less for their time than for the window of the core: the more
/// of them lie between two loads, the fewer misses overlap. Counted in what g++ 12 -O2 for baseline x86-64
/// makes of this code over plain memory, by benchmarks/gather.cpp, which prints the counts beside these sums
/// (docs/engines/buffer_manager.md). What a page without mask costs too, from the call to the address, is
/// left out: nobody is charged for it. Those of the copies are in memory/copy_lines.hpp.
struct LineInstructions {
  static constexpr std::uint32_t kAsk = 27;   ///< first and last line, the lines wanted of one word of the mask
  static constexpr std::uint32_t kWord = 30;  ///< more, per word, where the range lies in several
  static constexpr std::uint32_t kMissing = 34;  ///< per word with missing lines: is it one run; addresses
  static constexpr std::uint32_t kRun = 25;  ///< per run, where a word has several or a page is loaded whole
  static constexpr std::uint32_t kComplete = 16;  ///< per word that becomes full: whether the others are
  static constexpr std::uint32_t kSlot = 15;  ///< per line of a mini page: slot, two addresses, the line, loop
};

/// Copies a line through registers.
template <memory::Memory M>
inline void gather_line(M& memory, Address from, Address to, std::uint32_t instructions) {
  blocks::page::Line content;
  memory.read(from, content);
  memory.write(to, content);
  memory.compute(0, instructions);
}

/// MakeResident of section 3.1.
template <memory::Memory M>
Address BufferManager<M>::resident(M& memory, Page& page, std::uint32_t offset, std::uint32_t bytes) {
  if ((page.frame & kWholeTag) != 0)
    return data_of(untagged(page.frame)) + offset;
  if (is_mini(page.frame))
    return resident_mini(memory, page.frame, offset, bytes);
  if (on_pmem(page.frame))
    return resident_on_pmem(memory, page, offset);
  return resident_full(memory, page.frame, offset, bytes);
}

template <memory::Memory M>
Address BufferManager<M>::resident_on_pmem(M& memory, const Page& page, std::uint32_t offset) {
  const Address full = migrated(memory, page);
  return (full != 0 ? data_of(full) : page.frame) + offset;
}

template <memory::Memory M>
inline Address BufferManager<M>::resident_full(M& memory, Address full, std::uint32_t offset,
                                               std::uint32_t bytes) {
  if (memory.template load<FrameState>(full).resident == 0) {
    if (config_.page_access == PageAccess::kRedirected)
      return memory.template load<Address>(full + FullFrame::kPmem) + offset;
    const std::uint32_t first = offset / kLineBytes;
    const std::uint32_t last = (offset + bytes - 1) / kLineBytes;
    memory.compute(0, LineInstructions::kAsk);
    // Most ranges lie in one word of the mask, and most of their lines are here.
    if (first / 64 == last / 64) [[likely]] {
      load_word(memory, full, first / 64, ((std::uint64_t{2} << (last - first)) - 1) << (first % 64));
    } else {
      load_words(memory, full, first, last);
    }
  }
  return data_of(full) + offset;
}

template <memory::Memory M>
void BufferManager<M>::load_words(M& memory, Address full, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t word = first / 64; word <= last / 64; ++word) {
    std::uint64_t wanted = ~std::uint64_t{0};
    if (word == first / 64)
      wanted <<= first % 64;
    if (word == last / 64)
      wanted &= ~std::uint64_t{0} >> (63 - last % 64);
    memory.compute(0, LineInstructions::kWord);
    load_word(memory, full, word, wanted);
  }
}

/// Loads what is missing of the lines `wanted` of one word of the mask of an NVM-backed page.
template <memory::Memory M>
inline void BufferManager<M>::load_word(M& memory, Address full, std::uint32_t word, std::uint64_t wanted) {
  const auto have = memory.template load<std::uint64_t>(full + FullFrame::kResident + word * 8);
  if ((wanted & ~have) == 0) [[likely]]
    return;
  if (page_latches_.any()) [[unlikely]]
    return load_missing_latched(memory, full, word, wanted & ~have, have | wanted);
  load_missing(memory, full, word, wanted & ~have, have | wanted);
}
template <memory::Memory M>
void BufferManager<M>::load_missing_latched(M& memory, Address full, std::uint32_t word, std::uint64_t missing,
                                            std::uint64_t have) {
  const HeldLatch<M> alone = changing_frame(memory, full);
  load_missing(memory, full, word, missing, have);
}

/// One run of missing lines is the rule: of a row, what the row before does not share with it. The copy comes
/// last, when nothing is left to remember.
template <memory::Memory M>
void BufferManager<M>::load_missing(M& memory, Address full, std::uint32_t word, std::uint64_t missing,
                                    std::uint64_t have) {
  const memory::InSection pages(memory, memory::Section::kPages);
  memory.compute(0, LineInstructions::kMissing);
  memory.template store<std::uint64_t>(full + FullFrame::kResident + word * 8, have);
  if (have == ~std::uint64_t{0}) [[unlikely]]
    note_complete(memory, full);
  const std::uint64_t base = std::uint64_t{word} * 64 * kLineBytes;
  const Address from = memory.template load<Address>(full + FullFrame::kPmem) + base;
  const Address to = data_of(full) + base;
  const auto first = static_cast<std::uint32_t>(__builtin_ctzll(missing));
  const std::uint64_t run = missing >> first;
  if ((run & (run + 1)) != 0) [[unlikely]]
    return load_runs(memory, from, to, missing);
  const std::uint32_t lines = 64 - static_cast<std::uint32_t>(__builtin_clzll(run));
  counters_.lines_loaded += lines;
  memory.copy_lines(from + first * kLineBytes, to + first * kLineBytes, lines);
}

template <memory::Memory M>
void BufferManager<M>::load_runs(M& memory, Address from, Address to, std::uint64_t missing) {
  do {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(missing));
    const auto lines = static_cast<std::uint32_t>(std::countr_one(missing >> first));
    memory.compute(0, LineInstructions::kRun);
    memory.copy_lines(from + first * kLineBytes, to + first * kLineBytes, lines);
    counters_.lines_loaded += lines;
    missing &= missing + (std::uint64_t{1} << first);  // the carry ends behind the lowest run
  } while (missing != 0);
}

/// A word of the mask has just become full: with the last one, the page needs no mask any more.
template <memory::Memory M>
void BufferManager<M>::note_complete(M& memory, Address full) {
  memory.compute(0, LineInstructions::kComplete);
  for (std::uint32_t word = 0; word < layout_.lines() / 64; ++word) {
    if (memory.template load<std::uint64_t>(full + FullFrame::kResident + word * 8) != ~std::uint64_t{0})
      return;
  }
  auto state = memory.template load<FrameState>(full);
  state.resident = 1;
  memory.template store<FrameState>(full, state);
}

/// The path without residency checks: the rest of the page at once.
template <memory::Memory M>
void BufferManager<M>::load_all(M& memory, Address full) {
  const memory::InSection pages(memory, memory::Section::kPages);
  const HeldLatch<M> alone = changing_frame(memory, full);
  auto source = memory.template load<Address>(full + FullFrame::kPmem);
  if (config_.page_access == PageAccess::kSystemCall)
    source = begin_read_call(memory, source);
  auto state = memory.template load<FrameState>(full);
  const bool masked = (state.flags & kMasked) != 0;
  for (std::uint32_t word = 0; word < layout_.lines() / 64; ++word) {
    const std::uint64_t have =
        masked ? memory.template load<std::uint64_t>(full + FullFrame::kResident + word * 8) : 0;
    const std::uint64_t base = std::uint64_t{word} * 64 * kLineBytes;
    if (have != ~std::uint64_t{0})
      load_runs(memory, source + base, data_of(full) + base, ~have);
  }
  counters_.page_copies_in += masked ? 0 : 1;
  state.resident = 1;
  memory.template store<FrameState>(full, state);
}

/// What read() does before the page is copied to its frame, from the address that is returned: "PMFS copies the
/// data block from NVM to a kernel buffer and then the kernel copies the requested data block to an internal
/// buffer slot" (Mustafa et al., section IV.A).
template <memory::Memory M>
Address BufferManager<M>::begin_read_call(M& memory, Address source) {
  cpu_work(memory, config_.system_call_cycles);
  if (!config_.kernel_buffer)
    return source;
  memory.copy_lines(source, staging_, layout_.lines());
  ++counters_.page_copies_in;
  return staging_;
}

template <memory::Memory M>
Address BufferManager<M>::resident_mini(M& memory, Address mini, std::uint32_t offset, std::uint32_t bytes) {
  const Address base = untagged(mini);
  auto state = memory.template load<FrameState>(base);
  if ((state.flags & kPromoted) != 0)
    return resident_full(memory, memory.template load<Address>(base + MiniFrame::kFull), offset, bytes);
  const std::uint32_t first = offset / kLineBytes;
  const std::uint32_t wanted = (offset + bytes - 1) / kLineBytes - first + 1;
  auto slots = memory.template load<MiniSlots>(base + MiniFrame::kSlots);
  const std::uint32_t count = state.resident;
  // One 16-byte compare, a mask, a bit scan: the slots are sorted, so the range is where its first line is.
  memory.compute(4, 5);
  std::uint32_t at = 0;
  while (at < count && slots.line[at] < first)
    ++at;
  std::uint32_t have = 0;
  while (at + have < count && slots.line[at + have] < first + wanted)
    ++have;
  const Address lines = base + MiniFrame::kHeaderBytes;
  if (have == wanted)
    return lines + at * kLineBytes + offset % kLineBytes;
  const memory::InSection pages(memory, memory::Section::kPages);
  const std::uint32_t missing = wanted - have;
  if (count + missing > MiniFrame::kCapacity)
    return resident_full(memory, promote(memory, mini), offset, bytes);
  const HeldLatch<M> alone = changing_frame(memory, mini);

  // Sorted order: what lies behind the range moves up, then the range is filled, from its end.
  const auto move_line = [&](std::uint32_t from, std::uint32_t to) {
    gather_line(memory, lines + from * kLineBytes, lines + to * kLineBytes, LineInstructions::kSlot);
  };
  const auto dirty = memory.template load<std::uint16_t>(base + MiniFrame::kDirty);
  std::uint32_t moved = dirty & ((1U << at) - 1);
  for (std::uint32_t slot = count; slot-- > at + have;) {
    move_line(slot, slot + missing);
    slots.line[slot + missing] = slots.line[slot];
    moved |= (dirty >> slot & 1U) << (slot + missing);
  }
  const auto source = memory.template load<Address>(base + MiniFrame::kPmem);
  for (std::uint32_t index = wanted; index-- > 0;) {
    const std::uint32_t line = first + index;
    const std::uint32_t to = at + index;
    if (have > 0 && slots.line[at + have - 1] == line) {
      --have;
      if (at + have != to)
        move_line(at + have, to);
      moved |= (dirty >> (at + have) & 1U) << to;
    } else {
      gather_line(memory, source + line * kLineBytes, lines + to * kLineBytes, LineInstructions::kSlot);
      ++counters_.lines_loaded;
    }
    slots.line[to] = static_cast<std::uint8_t>(line);
  }
  memory.template store<MiniSlots>(base + MiniFrame::kSlots, slots);
  if (moved != dirty)
    memory.template store<std::uint16_t>(base + MiniFrame::kDirty, static_cast<std::uint16_t>(moved));
  state.resident = static_cast<std::uint8_t>(count + missing);
  memory.template store<FrameState>(base, state);
  return lines + at * kLineBytes + offset % kLineBytes;
}

template <memory::Memory M>
Address BufferManager<M>::promote(M& memory, Address mini) {
  ++counters_.promotions;
  const Address base = untagged(mini);
  const Address full = new_full(memory);
  // Making room does not touch a fixed page.
  auto head = memory.template load<FrameHead>(base);
  const HeldLatch<M> alone = changing(memory, head.id);
  ensure(is_used(mini, head.state) && (head.state.flags & kPromoted) == 0,
         "a mini page is promoted that cannot be");
  const auto slots = memory.template load<MiniSlots>(base + MiniFrame::kSlots);
  const auto dirty = memory.template load<std::uint16_t>(base + MiniFrame::kDirty);
  const auto source = memory.template load<Address>(base + MiniFrame::kPmem);
  FrameState state{.fixes = first_user(full), .referenced = 1};  // fixed by the wrapper
  state.flags =
      static_cast<std::uint8_t>((head.state.flags & (kSomeDirty | kMoved | kFormatted | kPinned)) | kMasked);
  write_full_header(memory, full, state, head.id, source);
  std::array<std::uint64_t, 4> resident_mask{};
  std::array<std::uint64_t, 4> dirty_mask{};
  for (std::uint32_t slot = 0; slot < head.state.resident; ++slot) {
    const std::uint32_t line = slots.line[slot];
    gather_line(memory, base + MiniFrame::kHeaderBytes + slot * kLineBytes, data_of(full) + line * kLineBytes,
                LineInstructions::kSlot);
    resident_mask[line / 64] |= std::uint64_t{1} << (line % 64);
    dirty_mask[line / 64] |= std::uint64_t{dirty >> slot & 1U} << (line % 64);
  }
  memory.write(full + FullFrame::kResident, std::as_bytes(std::span(resident_mask)));
  memory.write(full + layout_.dirty(), std::as_bytes(std::span(dirty_mask)));
  memory.template store<std::uint64_t>(full + kFirstChange,
                                       memory.template load<std::uint64_t>(base + kFirstChange));
  table_.assign(memory, table_.find(memory, head.id), full);
  head.state.flags = static_cast<std::uint8_t>((head.state.flags & ~kPinned) | kPromoted);
  memory.template store<FrameState>(base, head.state);
  memory.template store<Address>(base + MiniFrame::kFull, full);
  if (config_.debug_pages) [[unlikely]]
    forget_lines(memory, base + MiniFrame::kHeaderBytes, MiniFrame::kCapacity);
  pins_.replace(mini, full);
  return full;
}

template <memory::Memory M>
Address BufferManager<M>::frame_behind(M& memory, const Page& page) {
  if (!is_mini(page.frame))
    return untagged(page.frame);
  const Address base = untagged(page.frame);
  if ((memory.template load<FrameState>(base).flags & kPromoted) == 0)
    return page.frame;
  return memory.template load<Address>(base + MiniFrame::kFull);
}

}  // namespace pmsim::engines::buffer
