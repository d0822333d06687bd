#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "pmsim/engines/options.hpp"

namespace pmsim::engines {

/// What a store has left for a rollback by way of its trees. Those without frames of their own have any number.
struct FreeRoom {
  std::uint64_t pages = 0;  ///< ids, at home
  std::uint64_t frames = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t all_frames = 0;  ///< free or not
};

/// Of a B+-tree, as it is now.
struct TreeShape {
  std::uint32_t leaf_capacity = 0;
  std::uint32_t inner_capacity = 0;
  std::uint32_t root_level = 0;
};

/// Pages that the rollback of a transaction may allocate in a tree of which it has merged leaves `merges`
/// times, and into which it has inserted `inserts` rows.
///
/// Without a merge: none. Splits only divide the ranges of keys that leaves stand for, and going back the rows
/// of a range are at every point those that it has held, in one leaf.
///
/// A merge removes one bound between such ranges. Of the leaves that contain removed bounds there are at most
/// m = merges, over at most 2 m ranges, and only they can split in the rollback. A split that leaves a removed
/// bound inside of either half, or none inside of both, happens at most m times. Any other puts at least half a
/// leaf of rows to where nothing splits any more. In these ranges lie, or come into them, at most 2 m leaves of
/// rows, besides those that are taken out again, which the transaction has inserted; m leaves more where the
/// rollback itself merges, which counts as a merge of the transaction.
///
/// A leaf that splits splits at most one node of each level above it. Of a level at most m nodes have such
/// leaves below them when the rollback begins. They may be full, and so once more what has come of them when
/// half a node of children has come again. On levels by which the tree grows only the latter happens.
[[nodiscard]] inline std::uint64_t pages_to_roll_back(const TreeShape& tree, std::uint64_t merges,
                                                      std::uint64_t inserts) noexcept {
  if (merges == 0)
    return 0;
  const std::uint64_t half = std::max(tree.leaf_capacity / 2, 1U);
  const std::uint64_t leaves = merges + (3 * merges * tree.leaf_capacity + inserts) / half + 1;
  const std::uint64_t half_inner = std::max(tree.inner_capacity / 2, 2U);
  const std::uint64_t filled = leaves / (half_inner - 1);
  return leaves + tree.root_level * std::min(leaves, 2 * merges + filled + 1) + 3 * (1 + filled);
}

/// What the transactions under way have done that decides what their rollbacks need, by thread and table. On
/// the host: a few counters.
class RollbackRoom {
 public:
  explicit RollbackRoom(std::uint32_t threads) : threads_(std::max(threads, 1U)) {}

  void work_as(std::size_t thread) noexcept { mine_ = thread; }
  /// Whether any has merged pages: others need no room.
  [[nodiscard]] bool is_needed() const noexcept { return merges_ != 0; }
  void inserted(TableId table) { ++of(table).inserts; }
  void merged(TableId table) {
    ++of(table).merges;
    ++merges_;
  }
  void end() {
    for (const Changes& changes : threads_[mine_])
      merges_ -= changes.merges;
    threads_[mine_].clear();
  }
  /// For all of them, with so many merges and inserts more in `table` by the thread that works.
  template <typename ShapeOf>
  [[nodiscard]] std::uint64_t pages(TableId table, std::uint64_t merges, std::uint64_t inserts,
                                    ShapeOf&& shape_of) {
    of(table);
    std::uint64_t all = 0;
    for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
      for (std::size_t of_table = 0; of_table < threads_[thread].size(); ++of_table) {
        const Changes& changes = threads_[thread][of_table];
        const bool more = thread == mine_ && of_table == table;
        all += pages_to_roll_back(shape_of(of_table), changes.merges + (more ? merges : 0),
                                  changes.inserts + (more ? inserts : 0));
      }
    }
    return all;
  }

 private:
  struct Changes {
    std::uint64_t merges = 0;
    std::uint64_t inserts = 0;
  };
  Changes& of(TableId table) {
    std::vector<Changes>& mine = threads_[mine_];
    if (mine.size() <= table)
      mine.resize(std::size_t{table} + 1);
    return mine[table];
  }

  std::vector<std::vector<Changes>> threads_;
  std::size_t mine_ = 0;
  std::uint64_t merges_ = 0;  ///< of all
};

}  // namespace pmsim::engines
