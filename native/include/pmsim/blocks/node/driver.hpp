#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/blocks/node/balance.hpp"
#include "pmsim/blocks/node/erase.hpp"
#include "pmsim/blocks/node/insert.hpp"
#include "pmsim/blocks/node/iterate.hpp"
#include "pmsim/blocks/node/layout.hpp"
#include "pmsim/blocks/node/merge.hpp"
#include "pmsim/blocks/node/node_image.hpp"
#include "pmsim/blocks/node/persistence.hpp"
#include "pmsim/blocks/node/search.hpp"
#include "pmsim/blocks/node/split.hpp"
#include "pmsim/blocks/undo/heap.hpp"
#include "pmsim/blocks/undo/undo_log.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/poll.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"

namespace pmsim::blocks::node {

/// The micro-operations of Table 2 of the paper that happen in data nodes, and the two of the allocator.
enum class Operation : std::uint8_t {
  kSearch,      ///< E1
  kIterate,     ///< E3
  kInsert,      ///< E4
  kSplit,       ///< E5
  kErase,       ///< E8
  kBalance,     ///< E9
  kMerge,       ///< E10
  kAllocate,    ///< a node, in a transaction of its own
  kDeallocate,  ///< likewise
};

/// Which key an operation is about.
enum class Position : std::uint8_t { kFirst, kMiddle, kLast, kRandom };

struct NodeOptions {
  Operation operation = Operation::kSearch;
  Geometry geometry{};
  Position position = Position::kMiddle;
  bool shuffled = false;  ///< pairs were inserted in random order; else in that of their keys, as in the paper
  Persist persist = Persist::kOnce;
  Split split = Split::kMove;
  bool allocates = true;   ///< a split allocates the new node; else it has one at hand
  bool to_larger = false;  ///< balance: the receiver has the larger keys
  IterateBy iterate_by = IterateBy::kCount;
  std::uint32_t chain = 16;  ///< iterate: nodes of a chain
  memory::Medium medium = memory::Medium::kPmem;
  std::uint64_t region_bytes = 64ULL << 20;  ///< of all nodes with the allocator's headers
  std::uint32_t library_cycles = 0;          ///< undo::Options
  std::uint64_t seed = 1;
};

/// The experiments E1, E3 to E5 and E8 to E10: an array of equal nodes far larger than the caches; every
/// operation meets a random one. One thread. Runs on any Memory.
///
///   load()       makes the nodes, once
///   prepare()    chooses the node and the key; not part of the work
///   fetch()      what the published loop does before it looks at the clock: draws a number, and reads the
///   node's
///                pointer from an array in persistent memory
///   operation()  the micro-operation, durable at its end
///   restore()    makes the node what it was, as the published program does between two operations; not timed
///
/// Nodes lie where the allocator of PMDK puts them (undo/heap.hpp).
template <memory::Memory M>
class NodeDriver {
 public:
  NodeDriver(M& memory, const NodeOptions& options)
      : options_(options),
        place_(place_of(memory, options)),
        log_(undo::UndoLog::create(memory, log_place(memory, options), {options.library_cycles})),
        heap_(undo::Heap::create(memory, place_, options.geometry.end())),
        persistence_(memory, options.persist, &log_),
        random_(mix64(options.seed)) {
    log_.recover(memory);
    const std::uint64_t objects = heap_.slots();
    if (objects < 2 * group() + 1)
      throw ConfigError("region_size: room for " + std::to_string(objects) +
                        " nodes, of which an operation needs " + std::to_string(group()) +
                        " and others to choose from; make the region larger");
  }

  /// Makes the nodes, once, before anything else; takes long where they are many.
  void load(M& memory, Poll poll = {}) {
    const std::uint64_t objects = heap_.slots();
    // Some stay free, for splits.
    const std::uint64_t nodes = (objects - std::max<std::uint64_t>(objects / 8, 1)) / group() * group();
    nodes_.reserve(nodes);
    poll.expect(2 * nodes);
    for (std::uint64_t node = 0; node < nodes; ++node) {
      log_.begin(memory);
      nodes_.push_back(heap_.allocate(memory, log_));
      heap_.commit(memory, log_);
      poll.worked();
    }
    pointers_ =
        memory.allocate(options_.medium, nodes * kPointerBytes, {.name = "pointers", .alignment = 1 << 21});
    for (std::uint64_t node = 0; node < nodes; ++node)
      memory.template store<std::uint64_t>(pointer_to(node), nodes_[node]);
    make_images();
    for (std::uint64_t node = 0; node < nodes; ++node) {
      write(memory, nodes_[node], image_of(node), {});
      poll.worked();
    }
    if (options_.operation == Operation::kIterate)
      link_chains(memory);
  }

  void prepare(M& memory) {
    chosen_ = random_.below(nodes_.size() / group()) * group();
    const Geometry& geometry = options_.geometry;
    if (options_.position == Position::kRandom) {
      rank_ = static_cast<std::uint32_t>(random_.below(geometry.entries));
      if (options_.operation == Operation::kInsert) {
        images_[0] = NodeImage(geometry, keys_but(rank_), order());
        write(memory, nodes_[chosen_], images_[0], {});
      }
    }
    position_ = images_[0].place_for(rank_ + 1, options_.operation == Operation::kInsert);
    if (options_.operation == Operation::kDeallocate ||
        (options_.operation == Operation::kSplit && !options_.allocates)) {
      log_.begin(memory);
      fresh_ = heap_.allocate(memory, log_);
      heap_.commit(memory, log_);
    }
    prepared_ = true;
  }

  void fetch(M& memory) {
    memory.compute(0, kLoopInstructions);
    ensure(memory.template load<std::uint64_t>(pointer_to(chosen_)) == nodes_[chosen_],
           "a pointer has changed");
  }

  void operation(M& memory) {
    if (!prepared_)
      prepare(memory);
    prepared_ = false;
    ++operations_;
    const Geometry& geometry = options_.geometry;
    memory.compute(0, kPointerInstructions);
    Node<M> node = at(memory, nodes_[chosen_]);
    switch (options_.operation) {
      case Operation::kSearch: {
        const std::uint32_t found = search(node, rank_ + 1, branches());
        done_ += found == position_ ? 1 : 0;
        return;
      }
      case Operation::kIterate:
        done_ += iterate(memory, geometry, node.base(), options_.iterate_by) == chain_sum() ? 1 : 0;
        return;
      case Operation::kAllocate:
        log_.begin(memory);
        fresh_ = heap_.allocate(memory, log_);
        construct(memory, fresh_);
        heap_.commit(memory, log_);
        ++done_;
        return;
      case Operation::kDeallocate:
        log_.begin(memory);
        heap_.free(memory, log_, fresh_);
        heap_.commit(memory, log_);
        fresh_ = 0;
        ++done_;
        return;
      default:
        break;
    }
    bool inside = options_.persist == Persist::kTransaction;
    if (options_.operation == Operation::kSplit && options_.allocates) {
      log_.begin(memory);
      fresh_ = heap_.allocate(memory, log_);
      construct(memory, fresh_);
      if (!inside)
        heap_.commit(memory, log_);
    } else {
      if (options_.operation == Operation::kSplit)
        construct(memory, fresh_);
      persistence_.begin();
      if (inside && options_.operation == Operation::kSplit)  // its bytes are to be durable with the rest
        log_.add_fresh(fresh_, options_.geometry.end());
      inside = false;
    }
    change(memory, node);
    persistence_.end(inside ? &heap_ : nullptr);
    ++done_;
  }

  void restore(M& memory) {
    if (fresh_ != 0) {
      log_.begin(memory);
      heap_.free(memory, log_, std::exchange(fresh_, 0));
      heap_.commit(memory, log_);
    }
    if (options_.operation == Operation::kSearch || options_.operation == Operation::kIterate ||
        options_.operation == Operation::kAllocate || options_.operation == Operation::kDeallocate)
      return;
    for (std::uint64_t node = chosen_; node < chosen_ + group(); ++node)
      write(memory, nodes_[node], image_of(node), memory::FlushKind::kClwb);
    memory.sfence(memory::kNoSite);
  }

  /// Operations that did what they should.
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  [[nodiscard]] std::uint64_t nodes() const noexcept { return nodes_.size(); }
  [[nodiscard]] Address node(std::uint64_t index) const noexcept { return nodes_[index]; }
  /// The node of the latest operation, for tests.
  [[nodiscard]] std::uint64_t chosen() const noexcept { return chosen_; }
  /// Of the latest split.
  [[nodiscard]] Address fresh() const noexcept { return fresh_; }
  [[nodiscard]] const Persistence<M>& persistence() const noexcept { return persistence_; }

  /// std::rand(), a remainder, the benchmark's own loop: two clock readings made a double (google-benchmark).
  static constexpr std::uint32_t kLoopInstructions = 100;
  /// A persistent pointer becomes an address (pmemobj_direct): the pool's number is compared with the one
  /// cached.
  static constexpr std::uint32_t kPointerInstructions = 8;

  /// Nodes that an operation is about.
  [[nodiscard]] std::uint64_t group() const noexcept {
    return options_.operation == Operation::kIterate ? options_.chain
           : options_.operation == Operation::kBalance || options_.operation == Operation::kMerge ? 2
                                                                                                  : 1;
  }

 private:
  static undo::Place place_of(M& memory, const NodeOptions& options) {
    const std::uint64_t run = undo::HeapLayout::kRunBytes;
    if (options.region_bytes < memory::kLineBytes + run)
      throw ConfigError(
          "region_size: " + std::to_string(options.region_bytes) +
          " bytes, but the allocator takes memory in runs of 256 KiB; make the region at least 257 KiB");
    const std::uint64_t bytes = options.region_bytes / memory::kLineBytes * memory::kLineBytes;
    return {memory.allocate(options.medium, bytes, {.name = "nodes", .alignment = 1 << 21}), bytes};
  }
  static undo::Place log_place(M& memory, const NodeOptions& options) {
    const std::uint64_t bytes = undo::UndoLog::place_bytes(4 * kMostNodeBytes);
    return {memory.allocate(options.medium, bytes, {.name = "undo log", .alignment = 1 << 21}), bytes};
  }

  /// The offset in a node's pointer, behind its pool.
  [[nodiscard]] Address pointer_to(std::uint64_t node) const noexcept {
    return pointers_ + node * kPointerBytes + kWordBytes;
  }
  [[nodiscard]] Node<M> at(M& memory, Address node) {
    return Node<M>(memory, options_.geometry, node, persistence_.changes());
  }
  [[nodiscard]] Branches branches() const noexcept {
    return options_.position == Position::kRandom ? Branches::kUnknown : Branches::kLearnt;
  }
  [[nodiscard]] std::uint64_t order() noexcept { return options_.shuffled ? random_.next() | 1 : 0; }

  /// The constructor of a node: count, slots and bitmap say that it is empty, and it has no neighbours.
  void construct(M& memory, Address node) {
    constexpr std::array<std::byte, kMostNodeBytes> kZeros{};
    const Geometry& geometry = options_.geometry;
    memory.write(node, std::span(kZeros).first(geometry.prev + kPointerBytes));
  }

  void change(M& memory, Node<M>& node) {
    switch (options_.operation) {
      case Operation::kInsert:
        return insert(persistence_, node, position_, {rank_ + 1, NodeImage::value_of(rank_ + 1)});
      case Operation::kErase:
        return erase(persistence_, node, position_);
      case Operation::kSplit: {
        Node<M> fresh = at(memory, fresh_);
        static_cast<void>(split(persistence_, node, fresh, options_.split));
        return;
      }
      default: {
        // The first of two is the one with the smaller keys.
        Node<M> other = at(memory, nodes_[chosen_ + 1]);
        if (options_.operation == Operation::kMerge)
          return merge(persistence_, node, other);
        return options_.to_larger ? balance(persistence_, node, other, true)
                                  : balance(persistence_, other, node, false);
      }
    }
  }

  /// Keys 1 to `entries` without the one of a rank (from 0).
  [[nodiscard]] std::vector<std::uint64_t> keys_but(std::uint32_t rank) const {
    std::vector<std::uint64_t> keys = keys_from(1, options_.geometry.entries);
    keys.erase(keys.begin() + rank);
    return keys;
  }
  [[nodiscard]] static std::vector<std::uint64_t> keys_from(std::uint64_t first, std::uint32_t count) {
    std::vector<std::uint64_t> keys(count);
    for (std::uint32_t at = 0; at < count; ++at)
      keys[at] = first + at;
    return keys;
  }

  void make_images() {
    const Geometry& geometry = options_.geometry;
    const std::uint32_t entries = geometry.entries;
    rank_ = options_.position == Position::kFirst    ? 0
            : options_.position == Position::kMiddle ? (entries + 1) / 2 - 1
                                                     : entries - 1;
    if (options_.operation == Operation::kBalance) {
      // A full node, and one that is half full but for one pair (section 5.4).
      const std::uint32_t half = (entries + 1) / 2 - 1;
      const std::uint32_t smaller = options_.to_larger ? entries : half;
      images_[0] = NodeImage(geometry, keys_from(1, smaller), order());
      images_[1] = NodeImage(geometry, keys_from(smaller + 1, options_.to_larger ? half : entries), order());
    } else if (options_.operation == Operation::kMerge) {
      const std::uint32_t half = (entries + 1) / 2;
      images_[0] = NodeImage(geometry, keys_from(1, half), order());
      images_[1] = NodeImage(geometry, keys_from(half + 1, entries - half), order());
    } else {
      images_[0] = NodeImage(geometry,
                             options_.operation == Operation::kInsert ? keys_but(rank_) : keys_from(1, entries),
                             order());
    }
  }
  [[nodiscard]] const NodeImage& image_of(std::uint64_t node) const noexcept {
    return images_[group() == 2 ? node % 2 : 0];
  }
  [[nodiscard]] std::uint64_t chain_sum() const noexcept {
    const std::uint64_t entries = options_.geometry.entries;
    return options_.chain * (entries * (entries + 1) / 2);
  }

  void write(M& memory, Address node, const NodeImage& image, std::optional<memory::FlushKind> flush) {
    const std::span<const std::byte> bytes = image.bytes();
    for (std::size_t at = 0; at < bytes.size(); at += memory::kLineBytes)
      memory.write(node + at, bytes.subspan(at, std::min<std::size_t>(memory::kLineBytes, bytes.size() - at)));
    if (flush)
      memory.flush(node, bytes.size(), *flush, memory::kNoSite);
  }

  void link_chains(M& memory) {
    for (std::uint64_t node = 0; node + 1 < nodes_.size(); ++node) {
      if ((node + 1) % options_.chain == 0)
        continue;
      Changes changes;  // of nobody's operation
      Node<M>(memory, options_.geometry, nodes_[node], changes).set_next(nodes_[node + 1]);
      Node<M>(memory, options_.geometry, nodes_[node + 1], changes).set_prev(nodes_[node]);
    }
  }

  NodeOptions options_;
  undo::Place place_;
  undo::UndoLog log_;
  undo::Heap heap_;
  Persistence<M> persistence_;
  Random random_;
  std::vector<Address> nodes_;
  Address pointers_ = 0;
  std::array<NodeImage, 2> images_;
  std::uint64_t chosen_ = 0;
  std::uint32_t rank_ = 0;      ///< of the key, from 0
  std::uint32_t position_ = 0;  ///< its place or slot in the node
  Address fresh_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t operations_ = 0;
  bool prepared_ = false;
};

}  // namespace pmsim::blocks::node
