#pragma once

#include "pmsim/engines/buffer/buffer_manager.hpp"

namespace pmsim::engines::buffer {

/// The parts of a region, one behind the other.
class Parts {
 public:
  [[nodiscard]] std::uint64_t add(std::uint64_t bytes, std::uint64_t alignment) noexcept {
    const std::uint64_t at = (bytes_ + alignment - 1) / alignment * alignment;
    bytes_ = at + bytes;
    return at;
  }
  /// Never empty: a region must not be.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_ == 0 ? 1 : bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

/// Fewest pages that DRAM must hold: those that one operation on a tree has fixed at the same time, and room to
/// replace something.
inline constexpr std::uint64_t kMinimumSlots = 8;

template <memory::Memory M>
void BufferManager<M>::lay_out(M& memory, bool fresh) {
  config_.check();
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 21;
  constexpr std::uint64_t kLine = kLineBytes;
  const std::uint64_t slots = config_.dram_bytes / layout_.bytes();
  if (slots < kMinimumSlots)
    throw CapacityError("dram_bytes: holds " + std::to_string(slots) + " pages of " +
                        std::to_string(layout_.bytes()) + " bytes with their headers; give it room for " +
                        std::to_string(kMinimumSlots));
  const std::uint64_t frames = config_.pmem_cache ? config_.pmem_frames() : 0;
  const std::uint64_t in_dram =
      slots * (config_.mini_pages && frames == 0 ? DramPool(0, slots, config_.page_bytes).minis_per_slab() : 1);
  const std::uint64_t pages = config_.home_pages();
  const std::uint64_t most_dirty =
      slots * (config_.mini_pages ? DramPool(0, slots, config_.page_bytes).minis_per_slab() : 1);

  Parts dram;
  static_cast<void>(dram.add(slots * layout_.bytes(), kLine));
  const std::uint64_t table = dram.add(IdTable::bytes_for(frames + in_dram), kLine);
  const std::uint64_t descriptors = dram.add(PmemPool::bytes_for(frames), kLine);
  const std::uint64_t admission =
      dram.add(config_.pmem_cache ? AdmissionSet::bytes_for(config_.admission_entries) : 0, kLine);
  const std::uint64_t dirty = dram.add(wal::DirtyQueue::bytes_for(most_dirty), kLine);
  const std::uint64_t map = dram.add(PageAllocator::map_bytes(pages), kLine);
  const std::uint64_t sector = dram.add(memory::kSectorBytes, memory::kSectorBytes);
  const std::uint64_t staging =
      dram.add(config_.threads * std::uint64_t{config_.page_bytes}, memory::kPageBytes);
  const std::uint64_t latches = config_.latched ? IdTable::kParts + 1 : 0;
  const std::uint64_t latch = dram.add(Latches::bytes_for(latches), kLine);
  const std::uint64_t spare = dram.add(config_.spare_dram_bytes, memory::kPageBytes);

  // The micro log is on PMem whatever the log's device is. With meta on the SSD it has a region of its own:
  // writes of the region with the pages are counted as their wear.
  const bool micro = config_.pmem_bytes >= config_.page_bytes;
  const std::uint64_t micro_bytes = micro ? PmemWriter::micro_log_bytes(config_.page_bytes) : 0;
  constexpr std::uint64_t kBlock = 256;
  Parts meta;
  const std::uint64_t micro_log = config_.meta_on_ssd ? 0 : meta.add(micro_bytes, kBlock);
  const std::uint64_t journal = meta.add(
      config_.home == Home::kSsd ? SsdWriter::journal_bytes(config_.journal_slots, config_.page_bytes) : 0,
      memory::kSectorBytes);
  const std::uint64_t copies = meta.add(PageAllocator::copies_bytes(pages), memory::kSectorBytes);

  using memory::Medium;
  if (fresh) {
    place_.dram = memory.allocate(Medium::kDram, dram.bytes(), {.name = "buffer pool", .alignment = kHuge});
    if (micro)
      place_.pmem = memory.allocate(Medium::kPmem, config_.pmem_frames() * config_.page_bytes,
                                    {.name = "pages", .alignment = kHuge});
    if (micro && config_.meta_on_ssd)
      place_.micro_log =
          memory.allocate(Medium::kPmem, micro_bytes, {.name = "micro log", .alignment = kBlock});
    if (config_.home == Home::kSsd)
      place_.ssd =
          memory.allocate(Medium::kBlock, pages * config_.page_bytes, {.name = "pages", .alignment = kHuge});
    place_.meta = memory.allocate(config_.meta_on_ssd ? Medium::kBlock : Medium::kPmem, meta.bytes(),
                                  {.name = "page journal", .alignment = kHuge});
  }
  dram_ = DramPool(place_.dram, slots, config_.page_bytes);
  table_ = IdTable(place_.dram + table, frames + in_dram);
  pmem_ = PmemPool(place_.pmem, place_.dram + descriptors, frames, config_.page_bytes);
  if (config_.pmem_cache)
    admission_ = AdmissionSet(place_.dram + admission, config_.admission_entries);
  allocator_ = PageAllocator(place_.dram + map, place_.meta + copies, pages, place_.dram + sector);
  dirty_ = wal::DirtyQueue(place_.dram + dirty, most_dirty);
  stagings_ = staging_ = place_.dram + staging;
  if (config_.latched) {
    table_.latch_parts(Latches(place_.dram + latch, IdTable::kParts));
    replacement_ = place_.dram + latch + Latches::bytes_for(IdTable::kParts);
  }
  spare_ = place_.dram + spare;
  pmem_writer_ = PmemWriter(config_.meta_on_ssd ? place_.micro_log : place_.meta + micro_log,
                            config_.page_bytes, config_.home == Home::kPmem, config_.page_write);
  ssd_ = SsdWriter(place_.meta + journal, config_.journal_slots, place_.ssd, config_.page_bytes,
                   place_.dram + sector, staging_);
  scratch_.resize(config_.page_bytes);
}

template <memory::Memory M>
BufferManager<M>::BufferManager(M& memory, const BufferConfig& config)
    : config_(config),
      layout_{config.page_bytes},
      header_bytes_(layout_.header_bytes()),
      random_(config.seed),
      pins_(config.threads) {
  lay_out(memory, true);
}

template <memory::Memory M>
BufferManager<M>::BufferManager(M& memory, const BufferConfig& config, const EnginePlace& place)
    : config_(config),
      layout_{config.page_bytes},
      header_bytes_(layout_.header_bytes()),
      place_(place),
      random_(config.seed),
      pins_(config.threads) {
  lay_out(memory, false);
}

template <memory::Memory M>
FreeRoom BufferManager<M>::room(std::uint32_t levels) const noexcept {
  const std::uint64_t parents = config_.pointer_swizzling ? pins_.count() / 8 + levels : 0;
  const std::uint64_t kept = pins_.count() + parents + kMinimumSlots;
  return {.pages = config_.home_pages() - allocator_.used(),
          .frames = dram_.slots() - std::min(dram_.slots(), kept),
          .all_frames = dram_.slots()};
}

template <memory::Memory M>
void BufferManager<M>::recover(M& memory) {
  table_.clear(memory);
  if (config_.pmem_cache)
    admission_.clear(memory);
  if (config_.pmem_bytes >= config_.page_bytes)
    pmem_writer_.recover(memory);
  if (config_.home == Home::kSsd)
    ssd_.recover(memory);
  allocator_.recover(memory);
  // One line of each frame; the addresses are known beforehand, so that the loads overlap.
  for (std::uint64_t index = 0; index < pmem_.count(); ++index) {
    const Address frame = pmem_.frame(index);
    std::array<std::uint64_t, 2> words{};  // page_id, reserved
    memory.read(frame + kIdAt, std::as_writable_bytes(std::span(words)));
    bool page = is_page_mark(words[1]);
    if (page && (words[1] & kLoaded) != 0 && words[0] >= allocator_.next()) {
      // A crash has come before sync(), which persists the map: nobody knows the page, and its id is free.
      pmem_writer_.invalidate(memory, frame);
      page = false;
    }
    if (page && words[0] >= config_.home_pages())
      throw ConfigError(
          "page_bytes, pmem_bytes, ssd_bytes: restart an engine with the options it was made with");
    pmem_.restore(memory, frame, page ? words[0] : kNoPage, (words[1] & kNewerThanSsd) != 0);
    if (page)
      table_.insert(memory, words[0], frame);
  }
}

template <memory::Memory M>
PageId BufferManager<M>::load(M& memory, std::span<const std::byte> image) {
  ensure(image.size() == config_.page_bytes, "a page is loaded that has another size");
  const PageId id = allocator_.take_next(memory);
  memory.write(staging_, image);
  const std::array<std::uint64_t, 3> header{0, id, kPageMark};
  memory.write(staging_, std::as_bytes(std::span(header)));
  if (config_.home == Home::kPmem) {
    const Address frame = place_.pmem + id * config_.page_bytes;
    for (std::uint32_t byte = 0; byte < config_.page_bytes; byte += kLineBytes)
      blocks::page::copy_line(memory, frame + byte, staging_ + byte, blocks::page::Write::kStream,
                              memory::kNoSite);
    return id;
  }
  memory.block_write(ssd_.home(id), staging_, config_.page_bytes);
  if (!config_.pmem_cache)
    return id;
  if (const Address frame = pmem_.take(memory)) {
    // A frame with a mark has to name its page, whenever a crash comes.
    pmem_writer_.install(memory, frame, staging_, kPageMark | kLoaded);
    pmem_.store(memory, frame, Descriptor{.id = id});
    table_.insert(memory, id, frame);
  }
  return id;
}

template <memory::Memory M>
void BufferManager<M>::sync(M& memory) {
  memory.sfence(site::kLoadFence);
  if (config_.home == Home::kSsd)
    memory.block_flush(site::kLoadFlush);
  allocator_.persist(memory);
}

template <memory::Memory M>
void BufferManager<M>::persist_allocation(M& memory) {
  allocator_.persist(memory);
}

template <memory::Memory M>
void BufferManager<M>::redo_allocate(M& memory, PageId id) {
  allocator_.set(memory, id, true);
}

template <memory::Memory M>
void BufferManager<M>::redo_release(M& memory, PageId id) {
  drop(memory, id);
}

}  // namespace pmsim::engines::buffer
