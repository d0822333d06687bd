#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pmsim/blocks/node/changes.hpp"
#include "pmsim/blocks/node/layout.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks::node {

/// What a key stands for: a small tuple, or a persistent pointer to a large one.
struct Value {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  friend bool operator==(const Value&, const Value&) = default;
};
static_assert(sizeof(Value) == kValueBytes);

struct Pair {
  std::uint64_t key = 0;
  Value value{};
  friend bool operator==(const Pair&, const Pair&) = default;
};

/// The published program's hash of a key (FPTree.hpp, fpHash): its lowest byte.
[[nodiscard]] constexpr std::uint8_t hash_of(std::uint64_t key) noexcept {
  return static_cast<std::uint8_t>(key);
}

/// Reads and changes one node through a Memory, and notes what it changes. What is durable when is the affair
/// of Persistence (persistence.hpp).
template <memory::Memory M>
class Node {
 public:
  Node(M& memory, const Geometry& geometry, Address base, Changes& changes)
      : memory_(&memory), geometry_(&geometry), base_(base), changes_(&changes) {}

  [[nodiscard]] const Geometry& geometry() const noexcept { return *geometry_; }
  [[nodiscard]] Address base() const noexcept { return base_; }
  [[nodiscard]] M& memory() const noexcept { return *memory_; }

  [[nodiscard]] Address key_at(std::uint32_t at) const noexcept {
    return base_ + geometry_->keys + at * kKeyBytes;
  }
  [[nodiscard]] Address value_at(std::uint32_t at) const noexcept {
    return base_ + geometry_->values + at * kValueBytes;
  }
  [[nodiscard]] Address slot_at(std::uint32_t at) const noexcept { return base_ + geometry_->slots + at; }

  [[nodiscard]] std::uint64_t key(std::uint32_t at) const {
    return memory_->template load<std::uint64_t>(key_at(at));
  }
  [[nodiscard]] Pair pair(std::uint32_t at) const {
    Pair pair{.key = key(at)};
    memory_->read(value_at(at), std::as_writable_bytes(std::span(&pair.value, 1)));
    return pair;
  }
  void set_pair(std::uint32_t at, const Pair& pair) {
    memory_->template store<std::uint64_t>(key_at(at), pair.key);
    memory_->write(value_at(at), std::as_bytes(std::span(&pair.value, 1)));
    changes_->note(key_at(at), kKeyBytes);
    changes_->note(value_at(at), kValueBytes);
  }

  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(memory_->template load<std::uint64_t>(base_ + geometry_->count));
  }
  void set_count(std::uint32_t count) {
    memory_->template store<std::uint64_t>(base_ + geometry_->count, count);
    changes_->note(base_ + geometry_->count, kWordBytes);
  }

  /// Slot 0 is the count, slot 1 the place of the smallest key.
  [[nodiscard]] std::uint32_t slot(std::uint32_t at) const {
    return memory_->template load<std::uint8_t>(slot_at(at));
  }
  void set_slot(std::uint32_t at, std::uint32_t place) {
    memory_->template store<std::uint8_t>(slot_at(at), static_cast<std::uint8_t>(place));
    changes_->note(slot_at(at), 1);
  }

  [[nodiscard]] std::uint64_t bitmap_word(std::uint32_t word) const {
    return memory_->template load<std::uint64_t>(word_at(word));
  }
  [[nodiscard]] bool used(std::uint32_t at) const { return (bitmap_word(at / 64) >> at % 64 & 1) != 0; }
  void set_used(std::uint32_t at, bool used) {
    const std::uint64_t bit = std::uint64_t{1} << at % 64;
    const std::uint64_t word = bitmap_word(at / 64);
    memory_->template store<std::uint64_t>(word_at(at / 64), used ? word | bit : word & ~bit);
    changes_->note_bits(word_at(at / 64), 1);
  }
  /// All bits of one word at once.
  void set_bitmap_word(std::uint32_t word, std::uint64_t bits) {
    memory_->template store<std::uint64_t>(word_at(word), bits);
    changes_->note_bits(word_at(word), bits_in(word));
  }
  [[nodiscard]] std::uint32_t bits_in(std::uint32_t word) const noexcept {
    return std::min<std::uint32_t>(64, geometry_->entries - word * 64);
  }

  [[nodiscard]] std::uint8_t hash(std::uint32_t at) const {
    return memory_->template load<std::uint8_t>(hash_at(at));
  }
  void set_hash(std::uint32_t at, std::uint8_t hash) {
    memory_->template store<std::uint8_t>(hash_at(at), hash);
    changes_->note(hash_at(at), 1);
  }

  /// Offsets of neighbours in the pool; the pool's own number, the first half of a persistent pointer, stays.
  [[nodiscard]] Address next() const {
    return memory_->template load<std::uint64_t>(base_ + geometry_->next + 8);
  }
  [[nodiscard]] Address prev() const {
    return memory_->template load<std::uint64_t>(base_ + geometry_->prev + 8);
  }
  void set_next(Address node) { set_pointer(geometry_->next, node); }
  void set_prev(Address node) { set_pointer(geometry_->prev, node); }

 private:
  [[nodiscard]] Address word_at(std::uint32_t word) const noexcept {
    return base_ + geometry_->bitmap + word * kWordBytes;
  }
  [[nodiscard]] Address hash_at(std::uint32_t at) const noexcept { return base_ + geometry_->hashes + at; }

  void set_pointer(std::uint32_t offset, Address node) {
    const std::array<std::uint64_t, 2> pointer{kPool, node};
    memory_->write(base_ + offset, std::as_bytes(std::span(pointer)));
    changes_->note(base_ + offset, kPointerBytes);
  }

  static constexpr std::uint64_t kPool = 0x706d'7369'6d00'0001;  ///< any number

  M* memory_;
  const Geometry* geometry_;
  Address base_;
  Changes* changes_;
};

/// All bits of a word of the bitmap of a full node.
template <memory::Memory M>
[[nodiscard]] std::uint64_t all_used(const Node<M>& node, std::uint32_t word) noexcept {
  return ~std::uint64_t{0} >> (64 - node.bits_in(word));
}

/// The key that lies in eight bytes of a node.
[[nodiscard]] inline std::uint64_t key_of(std::span<const std::byte> bytes) noexcept {
  std::uint64_t key;
  std::memcpy(&key, bytes.data(), sizeof key);
  return key;
}

/// Visits the elements of an array in order, `visit(index, bytes)`, and stops where it returns true: one load
/// for each line, `instructions` for each element.
template <memory::Memory M, typename Visit>
void scan_array(M& memory, Address array, std::uint32_t element_bytes, std::uint32_t count,
                std::uint32_t instructions, Visit&& visit) {
  std::array<std::byte, memory::kLineBytes> line;
  std::uint32_t at = 0;
  while (at < count) {
    const Address address = array + at * element_bytes;
    const auto left = static_cast<std::uint32_t>(memory::kLineBytes - address % memory::kLineBytes);
    const std::uint32_t here = std::min(count - at, std::max(left / element_bytes, 1U));
    memory.read(address, std::span(line).first(here * element_bytes));
    for (std::uint32_t index = 0; index < here; ++index, ++at) {
      if (visit(at, std::span<const std::byte>(line).subspan(index * element_bytes, element_bytes))) {
        memory.compute(0, (index + 1) * instructions);
        return;
      }
    }
    memory.compute(0, here * instructions);
  }
}

}  // namespace pmsim::blocks::node
