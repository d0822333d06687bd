#pragma once

#include <algorithm>

#include "pmsim/engines/btree/shares.hpp"
#include "pmsim/engines/fptree/engine.hpp"

namespace pmsim::engines::fptree {

// Tables are loaded leaf by leaf; the inner nodes are built above the list of the leaves, after a restart too.

template <memory::Memory M, std::uint32_t kInnerNodeBytes>
void FpTreeEngine<M, kInnerNodeBytes>::check_new(const TableSpec& spec) const {
  const auto refuse = [&spec](const std::string& what) {
    throw ConfigError("table '" + spec.name + "': " + what);
  };
  if (spec.key_bytes != 8 || spec.payload_bytes != 8) {
    refuse("key_bytes = " + std::to_string(spec.key_bytes) + ", payload_bytes = " +
           std::to_string(spec.payload_bytes) + ": engine fptree holds tables with 8 and 8 only");
  }
  if (spec.name.empty() || spec.name.size() >= Meta::kNameBytes)
    refuse("a name has 1 to 55 bytes");
  if (std::any_of(tables_.begin(), tables_.end(), [&](const Table& table) { return table.name == spec.name; }))
    refuse("it exists already");
  if (tables_.size() == Meta::kMaxTables)
    refuse("engine fptree holds at most " + std::to_string(Meta::kMaxTables) + " tables");
}

template <memory::Memory M, std::uint32_t kInnerNodeBytes>
auto FpTreeEngine<M, kInnerNodeBytes>::load_leaves(M& memory, RowSource& rows,
                                                   double fill) -> std::vector<Child> {
  if (!(fill > 0 && fill <= 1))
    throw ConfigError("fill = " + std::to_string(fill) + ": must be above 0 and at most 1");
  const btree::Shares shares(fill, Leaf::kSlots);
  std::vector<Child> children;
  std::array<std::byte, Leaf::kBytes> image;
  std::uint64_t left = rows.rows();
  std::optional<std::uint64_t> previous;
  Address next = space_.take(memory);
  do {
    const std::uint64_t count = std::min(left, shares.of(children.size()));
    left -= count;
    image.fill(std::byte{0});
    Bitmap used = 0;
    std::uint64_t low = 0;
    for (std::uint32_t slot = 0; slot < count; ++slot) {
      const std::span<std::byte> pair = std::span(image).subspan(Leaf::pair(0, slot), Leaf::kPairBytes);
      const std::uint64_t key = rows.next(pair.subspan(8));
      if (previous && key <= *previous)
        throw ConfigError("row with key " + std::to_string(key) + ": keys must ascend");
      previous = key;
      std::memcpy(pair.data(), &key, sizeof key);
      image[Leaf::kFingerprints + slot] = std::byte{Leaf::fingerprint(key)};
      used |= Bitmap{1} << slot;
      low = slot == 0 && !children.empty() ? key : low;
    }
    std::memcpy(image.data(), &used, sizeof used);
    const Address leaf = next;
    next = left > 0 ? space_.take(memory) : 0;
    memory.write(leaf, image);
    memory.template store<std::uint64_t>(space_.link(leaf), next);
    memory.flush(leaf, Leaf::kBytes, memory::FlushKind::kClwb, kFlushLoadedLeaf);
    memory.flush(space_.link(leaf), 8, memory::FlushKind::kClwb, kFlushLoadedLinks);
    children.push_back({low, leaf});
  } while (left > 0);
  return children;
}

template <memory::Memory M, std::uint32_t kInnerNodeBytes>
auto FpTreeEngine<M, kInnerNodeBytes>::build_inner(M& memory, const std::vector<Child>& children,
                                                   double fill) -> std::unique_ptr<Inner> {
  const btree::Layout layout = inner_layout();
  ChildSource source(children);
  const PageId root = btree::BulkLoader<Store, std::uint64_t, M>(memory, store_, layout, fill).load(source);
  return std::make_unique<Inner>(memory, store_, layout, root, inner_latches());
}

}  // namespace pmsim::engines::fptree
