#pragma once

#include <cstdint>

#include "pmsim/engines/buffer/id_table.hpp"

namespace pmsim::engines::buffer {

/// The pages that were lately denied a place on PMem (section 4.2): who asks again while still in the set is
/// warm and gets in. Bounded; when it is full the one that came first is forgotten. The paper asks for a bound
/// and leaves the order open; first in, first out needs no bookkeeping on hits, of which there are none: a page
/// that is found leaves the set.
///
/// Volatile, in simulated DRAM: a table from ids to nodes, and the nodes as a doubly linked list, so that a
/// page can leave from the middle.
class AdmissionSet {
 public:
  AdmissionSet() = default;
  AdmissionSet(Address base, std::uint64_t capacity)
      : table_(base, capacity), nodes_(base + IdTable::bytes_for(capacity)), capacity_(capacity) {}
  [[nodiscard]] static std::uint64_t bytes_for(std::uint64_t capacity) noexcept {
    return IdTable::bytes_for(capacity) + (capacity + 1) * sizeof(Node);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return table_.size(); }

  /// Whether the page was in the set; it is not any more. Otherwise it is, as the latest, from now on.
  template <memory::Memory M>
  bool consider(M& memory, std::uint64_t id) {
    if (const IdTable::Found found = table_.find(memory, id)) {
      remove(memory, found);
      return true;
    }
    if (table_.size() == capacity_)
      remove(memory, table_.find(memory, memory.template load<Node>(at(oldest_)).id));
    std::uint64_t node = free_;
    if (node != 0)
      free_ = memory.template load<Node>(at(node)).next;
    else
      node = ++fresh_;
    memory.template store<Node>(at(node), Node{id, 0, static_cast<std::uint32_t>(latest_)});
    if (latest_ != 0)
      memory.template store<std::uint32_t>(at(latest_) + kNext, static_cast<std::uint32_t>(node));
    else
      oldest_ = node;
    latest_ = node;
    table_.insert(memory, id, node);
    return false;
  }
  template <memory::Memory M>
  void clear(M& memory) {
    table_.clear(memory);
    oldest_ = latest_ = free_ = fresh_ = 0;
  }

 private:
  /// Numbers of nodes count from 1; 0: none.
  struct alignas(16) Node {
    std::uint64_t id = 0;
    std::uint32_t next = 0;    ///< came later
    std::uint32_t before = 0;  ///< came earlier
  };
  static_assert(sizeof(Node) == 16);
  static constexpr Address kNext = 8;
  static constexpr Address kBefore = 12;

  [[nodiscard]] Address at(std::uint64_t node) const noexcept { return nodes_ + node * sizeof(Node); }

  template <memory::Memory M>
  void remove(M& memory, const IdTable::Found& found) {
    const auto node = memory.template load_dependent<Node>(at(found.value));
    if (node.before != 0)
      memory.template store<std::uint32_t>(at(node.before) + kNext, node.next);
    else
      oldest_ = node.next;
    if (node.next != 0)
      memory.template store<std::uint32_t>(at(node.next) + kBefore, node.before);
    else
      latest_ = node.before;
    memory.template store<std::uint32_t>(at(found.value) + kNext, static_cast<std::uint32_t>(free_));
    free_ = found.value;
    table_.erase(memory, found);
  }

  IdTable table_;
  Address nodes_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t oldest_ = 0;
  std::uint64_t latest_ = 0;
  std::uint64_t free_ = 0;   ///< nodes given back
  std::uint64_t fresh_ = 0;  ///< nodes ever used
};

}  // namespace pmsim::engines::buffer
