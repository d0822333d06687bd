#include "pmsim/memory/sim_memory.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>

namespace pmsim::memory {

SimMemory::SimMemory(SimOptions options)
    : options_(options),
      tracking_(options.wear || options.persistence != Persistence::kUntracked),
      table_(options.capacities) {
  if (options.persistence != Persistence::kUntracked)
    durability_.emplace(options.persistence);
}
SimMemory::SimMemory(SimMemory&&) noexcept = default;
SimMemory& SimMemory::operator=(SimMemory&&) noexcept = default;
SimMemory::~SimMemory() = default;

Address SimMemory::allocate(Medium medium, std::uint64_t bytes, const RegionOptions& options) {
  const RegionPlace& place = table_.allocate(medium, bytes, options);
  // The durability tracker and block devices want their bytes in one piece.
  const bool in_one_piece = durability_.has_value() || medium == Medium::kBlock;
  const Backing backing =
      options.backing == Backing::kSparse && in_one_piece ? Backing::kBytes : options.backing;
  Region& region = add_region(place.base, bytes, backing);
  if (options_.wear && medium == Medium::kPmem)
    region.wear.emplace(place.base, bytes);
  return place.base;
}

SimMemory::Region& SimMemory::add_region(Address base, std::uint64_t bytes, Backing backing) {
  auto region = std::make_unique<Region>();
  region->base = base;
  region->bytes = bytes;
  region->backing = backing;
  region->index = all_.size();
  if (backing == Backing::kBytes) {
    // Whole lines: the tracker copies the line of a store even when the region ends inside it.
    const std::uint64_t whole_lines = (bytes + kLineMask) & ~kLineMask;
    const bool in_file = options_.block_in_file && medium_of(base) == Medium::kBlock;
    region->data = in_file ? MappedBytes::in_file(whole_lines) : MappedBytes(whole_lines);
    region->written = MappedBytes(bytes / kPageBytes / 8 + 1);
    region->persistent = durability_.has_value() && medium_of(base) != Medium::kDram;
  }
  all_.push_back(std::move(region));
  return *all_.back();
}

void SimMemory::first_write(Region& region, std::uint64_t page) {
  region.written.as<std::uint8_t>()[page / 8] |= static_cast<std::uint8_t>(1U << (page % 8));
  ++region.written_pages;
  region.data.taken(kPageBytes);
}

SimMemory::Region* SimMemory::find_line(Address line) noexcept {
  Region*& recent = recent_[(line >> kMediumShift) & 3];
  if (recent != nullptr && recent->contains(line, 1)) [[likely]]
    return recent;
  for (const auto& region : all_) {
    if (region->contains(line, 1))
      return recent = region.get();
  }
  return nullptr;
}

void SimMemory::attach(Stream& stream, std::uint32_t thread) noexcept {
  stream_ = &stream;
  thread_ = thread;
  if (durability_)
    durability_->set_thread(thread);
}

SimMemory::Region& SimMemory::find_region(Address address, std::uint64_t bytes) {
  if (medium_of(address) == Medium::kBlock) {
    throw ConfigError("a load, store or flush of a block device's address; use block_read() and block_write()");
  }
  for (const auto& region : all_) {
    if (region->contains(address, bytes))
      return *(recent_[(address >> kMediumShift) & 3] = region.get());
  }
  table_.refuse(address, bytes);
}

SimMemory::Region& SimMemory::block_region(Address device, std::size_t bytes) {
  table_.check_block(device, bytes);
  const auto found =
      std::ranges::find_if(all_, [&](const auto& region) { return region->contains(device, bytes); });
  ensure(found != all_.end(), "a checked region is gone");
  return **found;
}

const SimMemory::Region* SimMemory::region_if(Address address, std::uint64_t bytes) const noexcept {
  const auto found =
      std::ranges::find_if(all_, [&](const auto& region) { return region->contains(address, bytes); });
  return found == all_.end() ? nullptr : found->get();
}

void SimMemory::put_tracked(Region& region, OpKind kind, Address address, std::span<const std::byte> from) {
  const bool streamed = kind == OpKind::kStreamStore;
  while (!from.empty()) {
    const Address line = address & ~kLineMask;
    const auto part = from.first(std::min<std::size_t>(from.size(), kLineBytes - (address - line)));
    emit(kind, address, static_cast<std::uint32_t>(part.size()));
    if (region.persistent && log_) {
      log_->push_back(
          {kind, false, false, operation_, thread_, kNoSite, address, part.size(), {part.begin(), part.end()}});
    }
    if (region.persistent)
      durability_->store(address, part, region.data.data() + (line - region.base), streamed);
    if (region.wear)
      streamed ? region.wear->stream(address, part.size()) : region.wear->store(address);
    if (journal_ && region.backing == Backing::kBytes) {
      journal_->push_back(line);
      if (medium_of(address) == Medium::kPmem)
        changes_ += std::memcmp(region.data.data() + (address - region.base), part.data(), part.size()) != 0;
    }
    copy_in(region, address, part);
    if (region.persistent)
      step();
    address += part.size();
    from = from.subspan(part.size());
  }
}

void SimMemory::change_tracked(Region& region, Address address, std::span<const std::byte> word, bool locked) {
  Stream* const attached = std::exchange(stream_, nullptr);  // it has its micro-operation
  if (locked) {
    note(OpKind::kMfence, kNoSite, 0, 0);
    if (durability_)
      durability_->fence();
  }
  put_tracked(region, OpKind::kStore, address, word);
  stream_ = attached;
  // One instruction: it has one step, when it is done.
  if (locked && durability_ && !region.persistent)
    step();
}

void SimMemory::track_flush(Address line, FlushKind kind) {
  Region& region = region_of(line, 1);
  if (region.wear)
    region.wear->flush(line);
  if (!region.persistent)
    return;
  durability_->flush(line, kind);
  step();
}

void SimMemory::note(OpKind kind, Site site, Address address, std::size_t bytes) {
  if (site >= site_uses_.size())
    site_uses_.resize(std::size_t{site} + 1);
  ++site_uses_[site];
  if (log_)
    log_->push_back({kind, false, site == disabled_site_, operation_, thread_, site, address, bytes, {}});
}

void SimMemory::track_order(Site site) {
  note(OpKind::kCompute, site, 0, 0);
  if (log_)
    log_->back().order = true;
  if (durability_)
    site == disabled_site_ ? durability_->disorder() : durability_->order();
}

void SimMemory::track_fence() {
  if (!durability_)
    return;
  durability_->fence();
  step();
}

void SimMemory::block_read(Address device, Address destination, std::size_t bytes) {
  Region& from = block_region(device, bytes);
  Region& to = region_of(destination, bytes);
  from.data.accessed(bytes);
  emit(OpKind::kBlockRead, device, static_cast<std::uint32_t>(bytes));
  worked();
  if (from.backing == Backing::kNone)
    return;
  // The device writes the memory by itself: no micro-operations of the core, but the bytes may be persistent.
  const std::span<const std::byte> data(from.data.data() + (device - from.base), bytes);
  if (!tracking_)
    return copy_in(to, destination, data);
  Stream* attached = std::exchange(stream_, nullptr);
  put_tracked(to, OpKind::kStore, destination, data);
  stream_ = attached;
}

void SimMemory::block_write(Address device, Address source, std::size_t bytes) {
  transfer(OpKind::kBlockWrite, device, source, bytes);
}

void SimMemory::block_flush(Site site) { empty_write_cache(OpKind::kBlockFlush, site); }

void SimMemory::transfer(OpKind kind, Address device, Address source, std::size_t bytes) {
  Region& to = block_region(device, bytes);
  const Region& from = region_of(source, bytes);
  ensure(from.backing != Backing::kSparse, "a block transfer from a sparse region");
  to.data.accessed(bytes);
  emit(kind, device, static_cast<std::uint32_t>(bytes));
  worked();
  if (from.backing == Backing::kNone || to.backing == Backing::kNone)
    return;
  const std::byte* data = from.data.data() + (source - from.base);
  for (std::uint64_t done = 0; done < bytes; done += kSectorBytes)
    put_sector(to, device + done, data + done);
}

void SimMemory::put_sector(Region& to, Address device, const std::byte* data) {
  if (to.persistent) {
    if (log_) {
      log_->push_back({OpKind::kBlockWrite,
                       false,
                       false,
                       operation_,
                       thread_,
                       kNoSite,
                       device,
                       kSectorBytes,
                       {data, data + kSectorBytes}});
    }
    durability_->write_sector(device, data, to.data.data() + (device - to.base));
  }
  if (journal_) {
    for (std::size_t line = 0; line < kSectorBytes; line += kLineBytes)
      journal_->push_back(device + line);
  }
  copy_in(to, device, {data, kSectorBytes});
  if (to.persistent)
    step();
}

void SimMemory::replay(const LogEntry& entry) {
  if (entry.disabled)
    return;
  Stream* attached = std::exchange(stream_, nullptr);
  thread_ = entry.thread;
  if (durability_)
    durability_->set_thread(thread_);
  switch (entry.kind) {
    case OpKind::kStore:
      put<OpKind::kStore>(entry.address, entry.data);
      break;
    case OpKind::kStreamStore:
      put<OpKind::kStreamStore>(entry.address, entry.data);
      break;
    case OpKind::kClwb:
      flush(entry.address, entry.bytes, FlushKind::kClwb, entry.site);
      break;
    case OpKind::kClflushOpt:
      flush(entry.address, entry.bytes, FlushKind::kClflushOpt, entry.site);
      break;
    case OpKind::kClflush:
      flush(entry.address, entry.bytes, FlushKind::kClflush, entry.site);
      break;
    case OpKind::kSfence:
    case OpKind::kMfence:
      fence(entry.kind, entry.site);
      break;
    case OpKind::kBlockWrite:
      put_sector(block_region(entry.address, kSectorBytes), entry.address, entry.data.data());
      break;
    case OpKind::kBlockFlush:
      block_flush(entry.site);
      break;
    default:
      ensure(entry.order, "a log entry that no memory writes");
      order(entry.site);
      break;
  }
  stream_ = attached;
}

void SimMemory::empty_write_cache(OpKind kind, Site site) {
  if (tracking_)
    note(OpKind::kBlockFlush, site, 0, 0);
  if (site == disabled_site_)
    return;
  emit(kind, medium_base(Medium::kBlock), 0, 0, site);
  if (!durability_)
    return;
  durability_->flush_sectors();
  step();
}

const DurabilityTracker& SimMemory::durability() const {
  if (!durability_)
    throw ConfigError("persistence is not tracked; create the memory with persistence adr or eadr");
  return *durability_;
}

WordState SimMemory::word_state(Address address) const {
  const Address word = address & ~Address{kAtomicBytes - 1};
  const Region* region = region_if(word, 1);
  if (region == nullptr)
    table_.refuse(word, kAtomicBytes);
  if (medium_of(word) != Medium::kPmem || !region->persistent)
    return WordState::kLost;
  return durability().word_state(word, region->data.data() + (word - region->base));
}

SimMemory SimMemory::crash(const DurableImage& image, std::optional<Medium> lost) const {
  SimMemory after(options_);
  for (const Medium medium : {Medium::kDram, Medium::kPmem, Medium::kBlock}) {
    for (const RegionPlace& place : table_.places(medium)) {
      const Region& region = *region_if(place.base, 1);
      // The same base again, whatever alignment put it there.
      const std::uint64_t alignment = std::min(kMediumBytes, std::uint64_t{1} << std::countr_zero(place.base));
      after.allocate(medium, place.bytes, {place.name, alignment, region.backing});
      Region& copy = *after.all_.back();
      ensure(copy.base == place.base, "a region moved in a crash");
      if (medium == Medium::kDram || medium == lost || region.backing == Backing::kNone)
        continue;
      for (std::uint64_t page = 0; page * kPageBytes < region.bytes; ++page) {
        const std::uint8_t bits = region.written.as<std::uint8_t>()[page / 8];
        if (bits == 0) {
          page |= 7;
        } else if ((bits >> (page % 8) & 1) != 0) {
          const std::uint64_t offset = page * kPageBytes;
          copy_in(copy, place.base + offset,
                  {region.data.data() + offset, std::min(kPageBytes, region.bytes - offset)});
        }
      }
    }
  }
  for (const CellBytes& cell : image) {
    if (medium_of(cell.address) == lost)
      continue;
    const auto found =
        std::ranges::find_if(after.all_, [&](const auto& copy) { return copy->contains(cell.address, 1); });
    ensure(found != after.all_.end(), "a crash image has a cell outside of every region");
    Region& region = **found;
    const std::uint64_t inside =
        std::min<std::uint64_t>(cell.bytes.size(), region.base + region.bytes - cell.address);
    copy_in(region, cell.address, std::span(cell.bytes).first(inside));
  }
  return after;
}

WearSummary SimMemory::wear() const {
  if (!options_.wear)
    throw ConfigError("wear is not counted; create the memory with wear = true");
  WearSummary summary;
  for (const auto& region : all_) {
    if (region->wear)
      region->wear->add_to(summary);
  }
  return summary;
}

std::vector<std::uint32_t> SimMemory::line_writes(Address base) const {
  const Region* region = region_if(base, 1);
  if (region == nullptr || !region->wear)
    throw ConfigError("wear is not counted there; create the memory with wear = true");
  std::vector<std::uint32_t> counts;
  region->wear->append_line_writes(counts);
  return counts;
}

void SimMemory::reset_wear() {
  for (const auto& region : all_) {
    if (region->wear)
      region->wear->reset();
  }
}

void SimMemory::lose_dram() {
  for (const auto& region : all_) {
    if (medium_of(region->base) != Medium::kDram || region->backing == Backing::kNone)
      continue;
    if (region->backing == Backing::kBytes) {
      region->data = MappedBytes(region->data.size());
      region->written = MappedBytes(region->written.size());
      region->written_pages = 0;
    }
    region->sparse = {};
  }
}

void SimMemory::peek(Address address, std::span<std::byte> into) const {
  const Region* region = region_if(address, into.size());
  if (region == nullptr)
    table_.refuse(address, into.size());
  copy_out(*region, address, into);
}

std::uint64_t SimMemory::main_memory_in_use(std::uint64_t piece) const {
  std::set<std::uint64_t> pieces;  // by their places: no two regions have the same one in memory mode
  const auto add = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t number = begin / piece; number <= (end - 1) / piece; ++number)
      pieces.insert(number);
  };
  for (const auto& region : all_) {
    if (medium_of(region->base) == Medium::kBlock)
      continue;
    const std::uint64_t begin = region->base & (kMediumBytes - 1);
    if (region->backing != Backing::kBytes) {
      add(begin, begin + region->bytes);
      continue;
    }
    const auto* written = region->written.as<std::uint8_t>();
    for (std::uint64_t page = 0; page * kPageBytes < region->bytes; ++page) {
      if ((written[page / 8] >> page % 8 & 1) != 0)
        add(begin + page * kPageBytes, begin + std::min((page + 1) * kPageBytes, region->bytes));
    }
  }
  return pieces.size() * piece;
}

std::uint64_t SimMemory::touched_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& region : all_) {
    bytes += region->written_pages * kPageBytes + region->sparse.lines() * kLineBytes;
  }
  return bytes;
}

}  // namespace pmsim::memory
