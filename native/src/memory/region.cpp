#include "pmsim/memory/region.hpp"

#include <bit>
#include <cstdio>
#include <limits>

#include "pmsim/core/error.hpp"

namespace pmsim::memory {

namespace {

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::string_view name_of(Medium medium) noexcept {
  switch (medium) {
    case Medium::kDram:
      return "dram";
    case Medium::kPmem:
      return "pmem";
    case Medium::kBlock:
      return "block";
  }
  return "unknown";
}

RegionTable::RegionTable(const Capacities& capacities) : capacities_(capacities) {
  for (const Medium medium : {Medium::kDram, Medium::kPmem, Medium::kBlock}) {
    if (capacities.bytes[index_of(medium)] > kMediumBytes) {
      throw ConfigError("capacity of " + std::string(name_of(medium)) + " = " +
                        std::to_string(capacities.bytes[index_of(medium)]) +
                        " bytes: the address space holds at most " + std::to_string(kMediumBytes) +
                        " (16 TiB)");
    }
  }
}

const RegionPlace& RegionTable::allocate(Medium medium, std::uint64_t bytes, const RegionOptions& options) {
  const std::size_t index = index_of(medium);
  const std::string who = "region '" + options.name + "' on " + std::string(name_of(medium));
  if (bytes == 0)
    throw ConfigError(who + ": size is 0 bytes; give at least 1");
  if (!std::has_single_bit(options.alignment) || options.alignment < kLineBytes ||
      options.alignment > kMediumBytes) {
    throw ConfigError(who + ": alignment = " + std::to_string(options.alignment) +
                      ": must be a power of two and at least 64");
  }
  const bool main_memory = capacities_.one_main_memory && medium != Medium::kBlock;
  std::uint64_t& used = used_[main_memory ? index_of(Medium::kPmem) : index];
  const std::uint64_t offset = (used + options.alignment - 1) & ~(options.alignment - 1);
  const std::uint64_t capacity = capacities_.bytes[index];
  if (offset > capacity || bytes > capacity - offset) {
    throw CapacityError(who + ": " + std::to_string(bytes) + " bytes do not fit: " + std::to_string(used) +
                        " of " + std::to_string(capacity) + " bytes of " + std::string(name_of(medium)) +
                        " are in use; make the region smaller or the platform's capacity larger");
  }
  used = offset + bytes;
  return places_[index].emplace_back(RegionPlace{medium_base(medium) + offset, bytes, options.name});
}

std::uint64_t RegionTable::bytes_on(Medium medium) const noexcept {
  std::uint64_t sum = 0;
  for (const RegionPlace& place : places_[index_of(medium)])
    sum += place.bytes;
  return sum;
}

void RegionTable::check_block(Address device, std::uint64_t bytes) const {
  const std::uint64_t window = device >> kMediumShift;
  if (window >= 1 && window <= kMedia && medium_of(device) != Medium::kBlock) {
    throw ConfigError(
        "block access to a region that is not on block; use read() and write() for dram and pmem");
  }
  if (((device | bytes) & (kSectorBytes - 1)) != 0 || bytes == 0 ||
      bytes > std::numeric_limits<std::uint32_t>::max()) {
    throw ConfigError("block access to " + std::to_string(bytes) +
                      " bytes: address and size must be multiples of " + std::to_string(kSectorBytes) +
                      " bytes, and the size between 512 bytes and 4 GiB");
  }
  for (const RegionPlace& place : places_[index_of(Medium::kBlock)]) {
    if (device >= place.base && device - place.base < place.bytes &&
        bytes <= place.bytes - (device - place.base))
      return;
  }
  refuse(device, bytes);
}

void RegionTable::refuse(Address address, std::uint64_t bytes) const {
  std::string message = "access to " + std::to_string(bytes) + " bytes at " + hexadecimal(address) + ": ";
  const std::uint64_t window = address >> kMediumShift;
  if (window < 1 || window > kMedia) {
    throw ConfigError(message +
                      "not an address of dram, pmem or block; use the address that allocate() returned");
  }
  const Medium medium = medium_of(address);
  const RegionPlace* nearest = nullptr;
  for (const RegionPlace& place : places_[index_of(medium)]) {
    if (place.base <= address)
      nearest = &place;
  }
  if (nearest == nullptr)
    throw ConfigError(message + "no region of " + std::string(name_of(medium)) + " is there; allocate() one");
  throw ConfigError(message + "outside of region '" + nearest->name + "' on " + std::string(name_of(medium)) +
                    ", which is " + std::to_string(nearest->bytes) + " bytes at " + hexadecimal(nearest->base));
}

}  // namespace pmsim::memory
