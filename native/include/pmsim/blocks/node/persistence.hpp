#pragma once

#include <array>
#include <cstdint>

#include "pmsim/blocks/node/changes.hpp"
#include "pmsim/blocks/node/layout.hpp"
#include "pmsim/blocks/node/node.hpp"
#include "pmsim/blocks/site.hpp"
#include "pmsim/blocks/undo/heap.hpp"
#include "pmsim/blocks/undo/undo_log.hpp"

namespace pmsim::blocks::node {

/// How a change of nodes becomes durable.
enum class Persist : std::uint8_t {
  /// All changed lines are written back, then one fence: what the paper times. A crash may leave any part of
  /// the
  /// change.
  kOnce,
  /// What nobody can see yet becomes durable first; then a count or bit that publishes it, in one 8-byte word.
  /// For
  /// inserts, and for erases that only clear a bit: whatever a crash leaves, it is the node before or after.
  kOrdered,
  /// An undo-log transaction (undo/undo_log.hpp): members of a node are snapshotted before they change, as
  /// PMDK's
  /// p<> does, and an unfinished change is rolled back.
  kTransaction,
};

/// Makes the changes of one operation durable. begin(), the operation, end(): durable then.
///
/// Between, the operation says what it is about to change (will_change) and where what it has changed so far
/// has to be durable before what follows (publish).
template <memory::Memory M>
class Persistence {
 public:
  static constexpr memory::Site kFlushHidden = 710;
  static constexpr memory::Site kFenceHidden = 711;
  static constexpr memory::Site kFlushChanges = 712;
  static constexpr memory::Site kFenceChanges = 713;
  static constexpr std::array<SiteInfo, 4> kSites{{
      {kFlushHidden, "write back what is not published yet"},
      {kFenceHidden, "barrier before the bit or count that publishes it"},
      {kFlushChanges, "write back the changes"},
      {kFenceChanges, "barrier before the acknowledgement"},
  }};

  /// `log`: of kTransaction.
  Persistence(M& memory, Persist how, undo::UndoLog* log = nullptr) : memory_(&memory), how_(how), log_(log) {}

  [[nodiscard]] Changes& changes() noexcept { return changes_; }
  [[nodiscard]] Persist how() const noexcept { return how_; }

  void begin() {
    if (how_ == Persist::kTransaction)
      log_->begin(*memory_);
  }

  void will_change(Address address, std::uint32_t bytes) {
    if (how_ == Persist::kTransaction && bytes > 0)
      log_->add_range(*memory_, address, bytes);
  }
  /// Keys and values: whole arrays, which are members of the published node.
  void will_change_pairs(const Node<M>& node) {
    will_change(node.key_at(0), node.geometry().entries * kKeyBytes);
    will_change(node.value_at(0), node.geometry().entries * kValueBytes);
  }
  /// Count, slots, bitmap and hashes.
  void will_change_front(const Node<M>& node) { will_change(node.base(), node.geometry().front_bytes()); }
  void will_change_pointers(const Node<M>& node) {
    will_change(node.base() + node.geometry().next, 2 * kPointerBytes);
  }

  void publish() {
    if (how_ == Persist::kOrdered)
      write_back(kFlushHidden, kFenceHidden);
  }

  /// `heap`: what the transaction has allocated from.
  void end(undo::Heap* heap = nullptr) {
    bytes_ += changes_.take_bytes();
    if (how_ != Persist::kTransaction)
      return write_back(kFlushChanges, kFenceChanges);
    changes_.take_lines([&](Address) { ++lines_; });
    heap != nullptr ? heap->commit(*memory_, *log_) : log_->commit(*memory_);
  }

  /// Over all operations so far: bytes of nodes changed, lines of nodes written back.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }

 private:
  void write_back(memory::Site flush, memory::Site fence) {
    changes_.take_lines([&](Address line) {
      memory_->flush(line, memory::kLineBytes, memory::FlushKind::kClwb, flush);
      ++lines_;
    });
    memory_->sfence(fence);
  }

  M* memory_;
  Persist how_;
  undo::UndoLog* log_;
  Changes changes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t lines_ = 0;
};

}  // namespace pmsim::blocks::node
