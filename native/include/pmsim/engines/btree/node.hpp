#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "pmsim/engines/btree/layout.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/engines/page_store.hpp"

namespace pmsim::engines::btree {

/// A fixed page of a store, and how a tree reads and changes it. Unfixes at the end of its scope.
///
/// `whole` says that the page was fixed with Access::kFull: its address is asked for once and remembered until
/// the page is changed. Otherwise each range is made resident before it is touched. Where there are latches,
/// the page's is held as long as it is fixed.
template <typename Store, memory::Memory M>
class Node {
 public:
  using Page = typename Store::Page;

  Node(M& memory, Store& store, Page page, Access access, const PageLatches* latches = nullptr,
       LatchMode mode = LatchMode::kShared)
      : memory_(&memory), store_(&store), page_(page), latches_(latches), whole_(access == Access::kFull) {
    if (latches_ != nullptr) [[unlikely]]
      latch_ = HeldLatch<M>(memory, latches_->latches.of(id()), mode);
  }
  Node(Node&& other) noexcept
      : memory_(other.memory_),
        store_(std::exchange(other.store_, nullptr)),
        page_(other.page_),
        base_(other.base_),
        latches_(other.latches_),
        latch_(std::move(other.latch_)),
        whole_(other.whole_) {}
  Node& operator=(Node&& other) noexcept(false) {
    if (this != &other) {
      unfix();
      memory_ = other.memory_;
      store_ = std::exchange(other.store_, nullptr);
      page_ = other.page_;
      base_ = other.base_;
      latches_ = other.latches_;
      latch_ = std::move(other.latch_);
      whole_ = other.whole_;
    }
    return *this;
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() noexcept(false) { unfix(); }

  void unfix() {
    if (store_ == nullptr)
      return;
    latch_.done();
    std::exchange(store_, nullptr)->unfix(*memory_, page_);
  }
  void release() {
    latch_.done();
    std::exchange(store_, nullptr)->release(*memory_, page_);
  }

  /// The address of a range; valid until this page is touched or changed again.
  [[nodiscard]] Address at(std::uint32_t offset, std::uint32_t bytes) {
    if (!whole_)
      return store_->resident(*memory_, page_, offset, bytes);
    if (base_ == 0)
      base_ = store_->resident(*memory_, page_, 0, store_->page_bytes());
    return base_ + offset;
  }
  template <typename T>
  [[nodiscard]] T load(std::uint32_t offset) {
    return memory_->template load<T>(at(offset, sizeof(T)));
  }
  /// The first look into a page whose address has just been found.
  [[nodiscard]] std::uint32_t count() {
    return memory_->template load_dependent<std::uint32_t>(at(kCountOffset, sizeof(std::uint32_t)));
  }
  [[nodiscard]] NodeHeader header() { return load<NodeHeader>(kCountOffset); }
  void read(std::uint32_t offset, std::span<std::byte> into) {
    if (!into.empty())
      memory_->read(at(offset, static_cast<std::uint32_t>(into.size())), into);
  }

  void write(std::uint32_t offset, std::span<const std::byte> bytes) {
    base_ = 0;
    if (!bytes.empty())
      store_->overwrite(*memory_, page_, offset, bytes);
  }
  template <typename T>
  void put(std::uint32_t offset, const std::type_identity_t<T>& value) {
    write(offset, std::as_bytes(std::span(&value, 1)));
  }
  void move(std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    base_ = 0;
    if (bytes > 0)
      store_->move(*memory_, page_, to, from, bytes);
  }
  /// Around the changes of one step that stay in these ranges (PageStore).
  void announce(std::initializer_list<PageRange> ranges) {
    store_->announce(*memory_, page_, std::span(ranges.begin(), ranges.size()));
  }
  void settle() { store_->settle(*memory_, page_); }
  /// Copies a range of another page to this one, through `scratch` (which stands for registers).
  void copy(std::uint32_t to, Node& from, std::uint32_t offset, std::uint32_t bytes,
            std::vector<std::byte>& scratch) {
    const auto part = std::span(scratch).first(bytes);
    from.read(offset, part);
    write(to, part);
  }
  void unswizzle(std::uint32_t offset, std::uint32_t count) {
    if (count > 0)
      store_->unswizzle_children(*memory_, page_, offset, count);
  }

  /// Fixed, and then latched, while this one still is: latches are coupled on the way down.
  [[nodiscard]] Node child(std::uint32_t offset, Access access, LatchMode mode) {
    return Node(*memory_, *store_, store_->fix_child(*memory_, page_, offset, access), access, latches_, mode);
  }
  [[nodiscard]] PageId id() const { return store_->page_id(page_); }
  [[nodiscard]] M& memory() noexcept { return *memory_; }

 private:
  M* memory_;
  Store* store_;
  Page page_;
  Address base_ = 0;
  const PageLatches* latches_;
  HeldLatch<M> latch_;
  bool whole_;
};

}  // namespace pmsim::engines::btree
