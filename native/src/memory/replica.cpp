#include "pmsim/memory/replica.hpp"

#include <algorithm>
#include <cstring>

namespace pmsim::memory {

Replica::Replica(SimMemory& source, Persistence persistence)
    : source_(&source), memory_({.capacities = source.table_.capacities(), .persistence = persistence}) {
  ensure(source.all_.empty() || source.journal_, "a replica of a memory that has been used already");
  if (!source.journal_)
    source.journal_.emplace();
  source.tracking_ = true;
  memory_.journal_.emplace();
  memory_.tracking_ = true;
}

std::uint64_t Replica::hash_of(Address line, const std::byte* bytes) noexcept {
  std::uint64_t hash = line;
  for (std::size_t word = 0; word < kLineBytes / sizeof(std::uint64_t); ++word) {
    std::uint64_t value;
    std::memcpy(&value, bytes + word * sizeof value, sizeof value);
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return mix64(hash);
}

void Replica::copy_line(SimMemory::Region& region, Address line) {
  std::byte* to = region.data.data() + (line - region.base);
  const std::uint64_t bytes = std::min<std::uint64_t>(kLineBytes, region.base + region.bytes - line);
  if (medium_of(line) == Medium::kDram) {
    std::memset(to, 0, bytes);
    return;
  }
  const SimMemory::Region& from = *source_->all_[region.index];
  SimMemory::copy_in(region, line, {from.data.data() + (line - from.base), bytes});
}

void Replica::match_regions() {
  if (memory_.all_.size() == source_->all_.size())
    return;
  if (memory_.all_.size() > source_->all_.size())
    memory_.all_.resize(source_->all_.size());
  for (std::size_t index = memory_.all_.size(); index < source_->all_.size(); ++index) {
    const SimMemory::Region& from = *source_->all_[index];
    memory_.add_region(from.base, from.bytes, from.backing);
  }
  memory_.table_ = source_->table_;
  memory_.recent_ = {};
}

void Replica::sync() {
  match_regions();
  const std::vector<Address>& journal = *source_->journal_;
  for (; seen_ < journal.size(); ++seen_) {
    const Address line = journal[seen_];
    SimMemory::Region* region = memory_.find_line(line);
    if (region == nullptr || medium_of(line) == Medium::kDram)
      continue;  // of a region that has gone, or lost anyway
    const std::byte* bytes = region->data.data() + (line - region->base);
    hash_of_source_ -= hash_of(line, bytes);
    copy_line(*region, line);
    hash_of_source_ += hash_of(line, bytes);
    memory_.journal_->push_back(line);  // for replicas of this replica
  }
  hash_ = hash_of_source_;
}

void Replica::sync_again() {
  seen_ = 0;
  sync();
}

void Replica::put(Address address, std::span<const std::byte> bytes) {
  SimMemory::Region* const found = memory_.find_line(address);
  ensure(found != nullptr, "a crash image has a cell outside of every region");
  SimMemory::Region& region = *found;
  const std::uint64_t inside = std::min<std::uint64_t>(bytes.size(), region.base + region.bytes - address);
  for (std::uint64_t done = 0; done < inside; done += kLineBytes) {
    const Address line = address + done;
    std::byte* to = region.data.data() + (line - region.base);
    hash_ -= hash_of(line, to);
    SimMemory::copy_in(region, line, bytes.subspan(done, std::min<std::uint64_t>(kLineBytes, inside - done)));
    hash_ += hash_of(line, to);
    memory_.journal_->push_back(line);
  }
}

void Replica::restore() {
  match_regions();
  for (const Address line : *memory_.journal_) {
    if (SimMemory::Region* region = memory_.find_line(line); region != nullptr)
      copy_line(*region, line);
  }
  hash_ = hash_of_source_;
  if (memory_.durability_)
    memory_.durability_->clear();
}

void Replica::forget_changes(SimMemory& source, std::span<Replica* const> replicas) {
  source.journal_->clear();
  for (Replica* replica : replicas)
    replica->seen_ = 0;
}

}  // namespace pmsim::memory
