#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/prototype.hpp"

namespace pmsim::prototype {

/// HostMemory for one program after the other: each finds the regions of the one before, all zero again. By
/// one thread.
class HostMemory : public memory::HostMemory {
 public:
  using memory::HostMemory::HostMemory;

  /// Throws ConfigError where a later program allocates something else than the first one.
  Address allocate(Medium medium, std::uint64_t bytes, std::string_view name) {
    if (medium == Medium::kBlock)
      throw ConfigError("no block device is measured on this machine; leave regions of it out");
    std::size_t& next = next_[memory::index_of(medium)];
    const std::vector<memory::RegionPlace>& places = regions().places(medium);
    if (next == places.size()) {
      ++next;
      return memory::HostMemory::allocate(medium, bytes, {.name = std::string(name)});
    }
    const memory::RegionPlace& place = places[next++];
    if (place.bytes != bytes || place.name != name)
      throw ConfigError("create() allocates '" + std::string(name) + "' where it had allocated '" + place.name +
                        "'; allocate the same regions in the same order");
    return place.base;
  }
  /// Throws ConfigError where there is no such region.
  [[nodiscard]] Address region(std::string_view name) const {
    for (const Medium medium : {Medium::kDram, Medium::kPmem}) {
      for (const memory::RegionPlace& place : regions().places(medium)) {
        if (place.name == name)
          return place.base;
      }
    }
    throw ConfigError("no region '" + std::string(name) + "' has been allocated");
  }
  [[nodiscard]] std::uint32_t thread() const noexcept { return 0; }

  /// What the next program finds is as if nothing had been allocated.
  void restart() {
    static constexpr std::array<std::byte, memory::kPageBytes> kZeros{};
    next_ = {};
    for (const Medium medium : {Medium::kDram, Medium::kPmem}) {
      for (const memory::RegionPlace& place : regions().places(medium)) {
        for (std::uint64_t done = 0; done < place.bytes; done += kZeros.size())
          write(place.base + done, std::span(kZeros).first(std::min(kZeros.size(), place.bytes - done)));
      }
    }
  }

 private:
  std::array<std::size_t, memory::kMedia> next_{};  ///< which region allocate() hands out next
};

static_assert(Memory<HostMemory>);

}  // namespace pmsim::prototype
