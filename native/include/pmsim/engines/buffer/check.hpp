#pragma once

#include <algorithm>
#include <map>

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

/// Compares everything with everything; tests ask for it, as a run would last for ever. Leaves no trace in
/// counters, but emits micro-operations: call it detached.
template <memory::Memory M>
std::string BufferManager<M>::check(M& memory, std::span<const PageId> owned) {
  std::string wrong;
  const auto complain = [&wrong](PageId id, const std::string& what) {
    if (wrong.empty())
      wrong = "page " + std::to_string(id) + ": " + what;
  };
  if (!pins_.empty() || !users_.empty())
    return "pages are pinned or about to be released, or in use";

  // What each tier says.
  std::map<PageId, Address> in_dram;
  std::map<PageId, Address> in_pmem;
  std::map<Address, std::uint32_t> children;  // of parent frames, counted from below
  std::uint64_t minis = 0;
  std::uint64_t slabs = 0;
  for_each_frame(memory, [&](Address frame, const FrameHead& head) {
    const Address base = untagged(frame);
    minis += is_mini(frame) ? 1 : 0;
    if (head.state.fixes != 0 || (head.state.flags & (kPinned | kPromoted)) != 0)
      return complain(head.id, "fixed, pinned or a wrapper while nothing should be");
    if (!in_dram.emplace(head.id, frame).second)
      return complain(head.id, "two frames in DRAM");
    const auto parent = memory.template load<Address>(parent_at(frame));
    if (parent != 0) {
      ++children[parent];
      const auto offset = memory.template load<std::uint16_t>(parent_offset_at(frame));
      if (memory.template load<Swip>(data_of(parent) + offset) != (kSwizzled | frame))
        complain(head.id, "its parent's swip is not a pointer to it");
    }
    const auto source = memory.template load<Address>(base + FullFrame::kPmem);
    if (is_mini(frame)) {
      const auto slots = memory.template load<MiniSlots>(base + MiniFrame::kSlots);
      const auto dirty = memory.template load<std::uint16_t>(base + MiniFrame::kDirty);
      const std::uint32_t count = head.state.resident;
      if (count > MiniFrame::kCapacity || source == 0 || head.state.children != 0)
        return complain(head.id, "a mini page that cannot be");
      if (dirty >> count != 0 || (dirty != 0) != ((head.state.flags & kSomeDirty) != 0))
        complain(head.id, "its dirty mask and its flag or count disagree");
      for (std::uint32_t slot = 0; slot < count; ++slot) {
        if (slot > 0 && slots.line[slot - 1] >= slots.line[slot])
          complain(head.id, "slots out of order");
      }
      if (const std::string problem = wrong_line(memory, frame, head); !problem.empty())
        complain(head.id, problem);
      return;
    }
    if (source == 0 && head.state.resident == 0)
      return complain(head.id, "neither whole nor NVM-backed");
    if (head.state.dirty != 0 && (head.state.resident == 0 || (head.state.flags & kSomeDirty) == 0))
      complain(head.id, "all dirty, but not all resident or not flagged");
    if (const std::string problem = wrong_line(memory, frame, head); !problem.empty())
      complain(head.id, problem);
    if (source == 0 || head.state.dirty != 0 || (head.state.flags & kMasked) == 0)
      return;
    bool any = false;
    for (std::uint32_t word = 0; word < layout_.lines() / 64; ++word) {
      auto resident = memory.template load<std::uint64_t>(base + FullFrame::kResident + word * 8);
      const auto dirty = memory.template load<std::uint64_t>(base + layout_.dirty() + word * 8);
      if (head.state.resident != 0)
        resident = ~std::uint64_t{0};
      any = any || dirty != 0;
      if ((dirty & ~resident) != 0)
        complain(head.id, "dirty lines that are not resident");
    }
    if (any != ((head.state.flags & kSomeDirty) != 0))
      complain(head.id, "its dirty mask and its flag disagree");
  });
  for (std::uint64_t index = 0; index < dram_.fresh(); ++index) {
    const auto head = memory.template load<FrameHead>(dram_.slot(index));
    slabs += (head.state.flags & kSlab) != 0 ? 1 : 0;
    const auto counted = children.find(dram_.slot(index));
    if ((head.state.flags & (kSlab | kFree)) == 0 &&
        head.state.children != (counted == children.end() ? 0 : counted->second))
      complain(head.id, "its count of swizzled children is wrong");
  }
  if (slabs * dram_.minis_per_slab() - minis != dram_.free_minis())
    return "slabs have lost places of mini pages";
  std::uint64_t covered = 0;
  for (std::uint64_t index = 0; index < pmem_.fresh(); ++index) {
    const Address frame = pmem_.frame(index);
    const Descriptor descriptor = pmem_.load(memory, frame);
    std::array<std::uint64_t, 2> words{};
    memory.read(frame + kIdAt, std::as_writable_bytes(std::span(words)));
    if (is_page_mark(words[1]) != (descriptor.id != kNoPage) ||
        (descriptor.id != kNoPage && words[0] != descriptor.id))
      return "frame " + std::to_string(index) + " on PMem and its descriptor name different pages";
    if (descriptor.id == kNoPage)
      continue;
    if (descriptor.fixes != 0 || (descriptor.flags & PmemPool::kMigrated) != 0)
      complain(descriptor.id, "fixed on PMem while nothing should be");
    if (((descriptor.flags & PmemPool::kDirty) != 0) != ((words[1] & kNewerThanSsd) != 0))
      complain(descriptor.id, "its descriptor and its mark disagree on what the SSD has");
    if (!in_pmem.emplace(descriptor.id, frame).second)
      complain(descriptor.id, "two frames on PMem");
    const bool has_copy = in_dram.contains(descriptor.id);
    covered += has_copy ? 1 : 0;
    if ((descriptor.referenced == PmemPool::kInDram) != has_copy)
      complain(descriptor.id, "its descriptor does not say whether DRAM has a frame of it");
  }
  if (covered != pmem_.covered())
    return "frames on PMem of which DRAM has one are counted wrong";

  // What counts as clean is on the SSD. (A crash may leave new bytes in a frame whose mark is old; redo has
  // then changed the page in DRAM, and its write-back will say so.)
  const auto on_ssd = [&](PageId id, Address from) {
    ssd_.read(memory, id, staging_);
    for (std::uint32_t byte = 0; byte < config_.page_bytes; byte += kLineBytes) {
      blocks::page::Line mine;
      blocks::page::Line theirs;
      memory.read(from + byte, mine);
      memory.read(staging_ + byte, theirs);
      if (byte == 0) {
        std::memset(mine.data() + kMarkAt, 0, 8);
        std::memset(theirs.data() + kMarkAt, 0, 8);
      }
      if (std::memcmp(mine.data(), theirs.data(), sizeof mine) != 0)
        return complain(id, "counts as clean, but differs from the SSD");
    }
  };
  if (config_.home == Home::kSsd) {
    for (const auto& [id, frame] : in_pmem) {
      const auto dram = in_dram.find(id);
      const bool dirty_above =
          dram != in_dram.end() &&
          (memory.template load<FrameHead>(untagged(dram->second)).state.flags & kSomeDirty) != 0;
      if ((pmem_.load(memory, frame).flags & PmemPool::kDirty) == 0 && !dirty_above)
        on_ssd(id, frame);
    }
    for (const auto& [id, frame] : in_dram) {
      const auto head = memory.template load<FrameHead>(untagged(frame));
      if (memory.template load<Address>(untagged(frame) + FullFrame::kPmem) == 0 && head.state.children == 0 &&
          (head.state.flags & kSomeDirty) == 0)
        on_ssd(id, data_of(frame));
    }
  }

  // The combined table has each page once, at the fastest place.
  std::uint64_t entries = 0;
  table_.for_each(memory, [&](PageId id, Address value) {
    ++entries;
    const auto dram = in_dram.find(id);
    const auto pmem = in_pmem.find(id);
    if (dram == in_dram.end() && pmem == in_pmem.end())
      return complain(id, "in the page table, but in no frame");
    if (value != (dram != in_dram.end() ? dram->second : pmem->second))
      complain(id, "the page table says another frame");
  });
  std::uint64_t pages = in_dram.size();
  for (const auto& [id, frame] : in_pmem)
    pages += in_dram.contains(id) ? 0 : 1;
  if (wrong.empty() && (entries != pages || entries != table_.size()))
    return "the page table has " + std::to_string(entries) + " entries for " + std::to_string(pages) + " pages";
  for (const auto& [id, frame] : in_dram) {
    const auto source = memory.template load<Address>(untagged(frame) + FullFrame::kPmem);
    const auto pmem = in_pmem.find(id);
    if (config_.pmem_cache && source != (pmem == in_pmem.end() ? 0 : pmem->second))
      complain(id, "its frames in DRAM and on PMem do not know each other");
    if (!allocator_.taken(memory, id))
      complain(id, "in DRAM, but not allocated");
  }
  for (const auto& [id, frame] : in_pmem) {
    if (!allocator_.taken(memory, id))
      complain(id, "on PMem, but not allocated");
  }
  for (PageId id = 0; id < allocator_.next(); ++id) {
    const bool has_owner = std::ranges::binary_search(owned, id);
    if (allocator_.taken(memory, id) != has_owner)
      complain(id, has_owner ? "owned, but released" : "lost: nobody owns it");
  }
  if (!owned.empty() && owned.back() >= allocator_.next())
    complain(owned.back(), "owned, but never allocated");
  return wrong;
}

}  // namespace pmsim::engines::buffer
