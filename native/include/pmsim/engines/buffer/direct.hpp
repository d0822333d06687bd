#pragma once

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

// Spitfire: pages are used where they lie on PMem (dissertation, section 1.3.3). A handle then holds the PMem
// frame's address, and the frame's descriptor in DRAM counts its fixes. Where such a page migrates to DRAM
// while it is fixed, its descriptor says so, and its handles find the copy by the page table; the copy stays
// fixed until the last of them is gone.

template <memory::Memory M>
Address BufferManager<M>::fix_on_pmem(M& memory, Address frame, Descriptor descriptor) {
  ++counters_.direct_fixes;
  const bool touches = config_.count_fixes || descriptor.referenced == 0;
  add_user(frame, descriptor);
  descriptor.referenced = 1;
  if (touches)
    pmem_.store(memory, frame, descriptor);
  return frame;
}

template <memory::Memory M>
void BufferManager<M>::unfix_on_pmem(M& memory, Address frame) {
  Descriptor descriptor = pmem_.load(memory, frame);
  remove_user(frame, descriptor);
  const bool settles = (descriptor.flags & PmemPool::kMigrated) != 0 && !is_used(frame, descriptor);
  if (settles) {
    descriptor.flags = static_cast<std::uint8_t>(descriptor.flags & ~PmemPool::kMigrated);
    const Address full = table_.find(memory, descriptor.id).value;
    auto state = memory.template load<FrameState>(full);
    remove_user(full, state);
    if (config_.count_fixes)
      memory.template store<FrameState>(full, state);
  }
  if (config_.count_fixes || settles)
    pmem_.store(memory, frame, descriptor);
}

template <memory::Memory M>
Address BufferManager<M>::migrated(M& memory, const Page& page) {
  const Descriptor descriptor = pmem_.load(memory, page.frame);
  if ((descriptor.flags & PmemPool::kMigrated) == 0)
    return 0;
  return table_.find(memory, page.id).value;
}

template <memory::Memory M>
Address BufferManager<M>::migrate(M& memory, const Page& page) {
  ++counters_.pages_loaded_pmem;
  const Address full = new_full(memory);  // a fixed page on PMem is not evicted
  const std::uint8_t flags = config_.cache_line_grained ? kMasked : 0;
  const HeldLatch<M> alone = changing(memory, page.id);
  write_full_header(memory, full, {.fixes = first_user(full), .referenced = 1, .flags = flags}, page.id,
                    page.frame);
  load_all(memory, full);
  table_.assign(memory, table_.find(memory, page.id), full);
  Descriptor descriptor = pmem_.load(memory, page.frame);
  descriptor.flags |= PmemPool::kMigrated;
  pmem_.store(memory, page.frame, descriptor);
  pmem_.cover(memory, page.frame);
  return full;
}

/// Steals: the change may be durable at any moment from the first store on, so the log has to be durable
/// before, with what undoes it. What is durable when: the log's record up to `lsn` before the first store; the
/// bytes before the LSN; everything on return.
template <memory::Memory M>
void BufferManager<M>::overwrite_on_pmem(M& memory, const Page& page, std::uint32_t offset,
                                         std::span<const std::byte> bytes, std::uint64_t lsn) {
  ++counters_.direct_writes;
  ensure(static_cast<bool>(hook_), "a change on PMem needs a log that can be forced: before_write_back");
  hook_(memory, lsn);
  memory.write(page.frame + offset, bytes);
  memory.flush(page.frame + offset, bytes.size(), FlushKind::kClwb, site::kDirectFlush);
  memory.sfence(site::kDirectFence);
  memory.template store<std::uint64_t>(page.frame + kMarkAt, kPageMark | kNewerThanSsd);
  memory.order(site::kDirectOrder);
  memory.template store<std::uint64_t>(page.frame + kLsnAt, lsn);
  memory.flush(page.frame, kLineBytes, FlushKind::kClwb, site::kDirectLsnFlush);
  memory.sfence(site::kDirectEnd);
  Descriptor descriptor = pmem_.load(memory, page.frame);
  descriptor.flags |= PmemPool::kDirty;
  pmem_.store(memory, page.frame, descriptor);
}

}  // namespace pmsim::engines::buffer
