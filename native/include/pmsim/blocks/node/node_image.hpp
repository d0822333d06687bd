#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "pmsim/blocks/node/layout.hpp"
#include "pmsim/blocks/node/node.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim::blocks::node {

/// The bytes of a node that holds certain keys, made on the host: what inserts into an empty node leave.
class NodeImage {
 public:
  NodeImage() = default;

  /// `keys` ascend. `shuffle`: a seed for the order of the inserts; 0: in that of the keys, as the published
  /// benchmarks do.
  NodeImage(const Geometry& geometry, const std::vector<std::uint64_t>& keys, std::uint64_t shuffle)
      : geometry_(geometry), bytes_(geometry.end()) {
    places_.reserve(keys.size());
    for (std::uint32_t at = 0; at < keys.size(); ++at)
      places_.push_back({keys[at], at});
    if (shuffle != 0 && geometry.layout != Layout::kSorted) {
      Random random(shuffle);
      for (std::uint32_t at = static_cast<std::uint32_t>(places_.size()); at > 1; --at)
        std::swap(places_[at - 1].at, places_[random.below(at)].at);
    }
    const auto count = static_cast<std::uint32_t>(keys.size());
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      const auto [key, at] = places_[rank];
      const Value value = value_of(key);
      put(geometry.keys + at * kKeyBytes, key);
      put(geometry.values + at * kValueBytes, value);
      if (geometry.layout == Layout::kIndirection)
        put(geometry.slots + rank + 1, static_cast<std::uint8_t>(at));
      if (geometry.layout == Layout::kHashing)
        put(geometry.hashes + at, hash_of(key));
    }
    if (geometry.layout == Layout::kIndirection)
      put(geometry.slots, static_cast<std::uint8_t>(count));
    if (!has_bitmap(geometry.layout)) {
      put(geometry.count, std::uint64_t{count});
      return;
    }
    for (std::uint32_t word = 0; word < geometry.bitmap_words; ++word) {
      const std::uint32_t bits = count > word * 64 ? std::min(64U, count - word * 64) : 0;
      put(geometry.bitmap + word * kWordBytes, bits == 0 ? std::uint64_t{0} : ~std::uint64_t{0} >> (64 - bits));
    }
  }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] static constexpr Value value_of(std::uint64_t key) noexcept { return {key * 100, ~key}; }

  /// Where a key is (of an indirection node: its slot), or where an insert of it puts it.
  [[nodiscard]] std::uint32_t place_for(std::uint64_t key, bool new_one) const {
    const auto found = std::ranges::lower_bound(places_, key, {}, &Place::key);
    const auto rank = static_cast<std::uint32_t>(found - places_.begin());
    if (geometry_.layout == Layout::kSorted)
      return rank;
    if (geometry_.layout == Layout::kIndirection)
      return rank + 1;
    return new_one || found == places_.end() ? static_cast<std::uint32_t>(places_.size()) : found->at;
  }

 private:
  struct Place {
    std::uint64_t key;
    std::uint32_t at;
  };

  template <typename T>
  void put(std::uint32_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }

  Geometry geometry_{};
  std::vector<std::byte> bytes_;
  std::vector<Place> places_;  ///< by key
};

}  // namespace pmsim::blocks::node
