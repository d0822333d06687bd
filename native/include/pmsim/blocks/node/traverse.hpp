#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/node/layout.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/poll.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::blocks::node {

struct TraverseOptions {
  std::uint32_t depth = 3;         ///< levels of inner nodes
  std::uint32_t node_bytes = 256;  ///< of inner nodes and leaves
  std::uint64_t level_bytes = 0;   ///< of the nodes of each level
  memory::Medium inner = memory::Medium::kPmem;
  memory::Medium leaves = memory::Medium::kPmem;
  std::uint64_t seed = 1;
};

/// Micro-operation E2 (section 5.2 of the paper): from a root to a leaf through a random child at every level,
/// without a search in between: what following pointers costs. Every level has as many nodes, all as likely;
/// each operation begins at a random one of the first.
///
/// Inner nodes are those of the published program: a count, N even keys, N + 1 children of 24 bytes, each a tag
/// and a persistent pointer.
template <memory::Memory M>
class TraverseDriver {
 public:
  TraverseDriver(M& memory, const TraverseOptions& options) : options_(options), random_(mix64(options.seed)) {
    children_ = (options.node_bytes - kInnerHeader) / (kKeyBytes + kChildBytes) / 2 * 2 + 1;
    first_child_ = kWordBytes + (children_ - 1) * kKeyBytes;
    nodes_ = options.level_bytes / options.node_bytes;
    if (nodes_ < 2)
      throw ConfigError("region_size: " + std::to_string(options.level_bytes) +
                        " bytes for each level, which needs " + "two nodes of " +
                        std::to_string(options.node_bytes) + " bytes; make the region larger");
    for (std::uint32_t level = 0; level <= options.depth; ++level) {
      levels_.push_back(memory.allocate(level < options.depth ? options.inner : options.leaves,
                                        nodes_ * options.node_bytes, {.name = "level", .alignment = 1 << 21}));
    }
  }

  /// Makes the nodes, once, before anything else; takes long where they are many.
  void load(M& memory, Poll poll = {}) {
    poll.expect(options_.depth * nodes_);
    for (std::uint32_t level = 0; level < options_.depth; ++level) {
      for (std::uint64_t node = 0; node < nodes_; ++node) {
        for (std::uint32_t child = 0; child < children_; ++child)
          memory.template store<std::uint64_t>(child_at(address(level, node), child),
                                               address(level + 1, random_.below(nodes_)));
        poll.worked();
      }
    }
    for (std::uint64_t leaf = 0; leaf < nodes_; ++leaf)
      memory.template store<std::uint64_t>(address(options_.depth, leaf), leaf);
  }

  void prepare(M&) {
    root_ = random_.below(nodes_);
    path_.resize(options_.depth);
    for (std::uint32_t& child : path_)
      child = static_cast<std::uint32_t>(random_.below(children_));
  }

  void operation(M& memory) {
    Address node = address(0, root_);
    for (const std::uint32_t child : path_) {
      memory.compute(0, kLevelInstructions);
      node = memory.template load_dependent<std::uint64_t>(child_at(node, child));
    }
    const auto leaf = memory.template load_dependent<std::uint64_t>(node);
    done_ += node == address(options_.depth, leaf) ? 1 : 0;
    ++operations_;
  }

  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  [[nodiscard]] std::uint64_t nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::uint32_t levels() const noexcept { return options_.depth + 1; }
  [[nodiscard]] Address address(std::uint32_t level, std::uint64_t node) const noexcept {
    return levels_[level] + node * options_.node_bytes;
  }

 private:
  static constexpr std::uint32_t kInnerHeader = 28;
  static constexpr std::uint32_t kChildBytes = 24;
  /// The tag, the pool's number compared with the one cached, base and offset added, the loop.
  static constexpr std::uint32_t kLevelInstructions = 12;

  /// The offset in a child's pointer, behind tag and pool.
  [[nodiscard]] Address child_at(Address node, std::uint32_t child) const noexcept {
    return node + first_child_ + child * kChildBytes + 2 * kWordBytes;
  }

  TraverseOptions options_;
  Random random_;
  std::uint32_t children_ = 0;
  std::uint32_t first_child_ = 0;
  std::uint64_t nodes_ = 0;
  std::vector<Address> levels_;
  std::uint64_t root_ = 0;
  std::vector<std::uint32_t> path_;
  std::uint64_t done_ = 0;
  std::uint64_t operations_ = 0;
};

}  // namespace pmsim::blocks::node
