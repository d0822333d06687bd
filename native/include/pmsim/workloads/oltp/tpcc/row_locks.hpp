#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pmsim/core/random.hpp"
#include "pmsim/engines/latches.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"
#include "pmsim/memory/section.hpp"
#include "pmsim/workloads/oltp/tpcc/cardinalities.hpp"
#include "pmsim/workloads/oltp/tpcc/keys.hpp"

namespace pmsim::workloads::oltp::tpcc {

using memory::LatchMode;

struct LockOptions {
  std::uint32_t copies = 0;  ///< 0: rows are not locked
  bool early = false;        ///< released when the transaction has its place in the log
};

/// Locks of rows, which transactions of several threads hold until they are durable, or rolled back: strict
/// two-phase locking (Gray et al., Granularity of Locks and Degrees of Consistency in a Shared Data Base,
/// 1976). One for each warehouse, district, customer and row of stock, a latch in a line of DRAM each, so that
/// only who wants the same row waits. What lies below one of these rows goes with it: orders and their lines
/// with their customer; new orders that wait for delivery with their warehouse's `deliveries`. Items never
/// change, and nobody reads history. That is what clause 3.4.1 asks of all transactions but stock levels, save
/// for a delivery that finds nothing in a district into which somebody is placing an order. A stock level only
/// has to see what is committed: as in an engine that keeps versions, it waits for nobody, and locks nothing.
///
/// Early, they are given up when the transaction has its place in the log, "pre-committed" (DeWitt et al.,
/// Implementation Techniques for Main Memory Database Systems, SIGMOD 1984; Soisalon-Soininen and Ylönen,
/// Partial Strictness in Two-Phase Locking, ICDT 1995): who has seen what it has done comes behind it there.
///
/// Nobody waits in a circle: rows are locked in the order of their addresses, which is that of the members
/// below.
///
/// At scale a warehouse stands for `copies` of the full size, of which each transaction means any. So threads,
/// whose number does not shrink, meet as often as at full size.
class RowLocks {
 public:
  /// Of no rows: to hold one is to do nothing.
  RowLocks() = default;
  RowLocks(const Cardinalities& size, const LockOptions& options) noexcept
      : size_(size), copies_(options.copies), early_(options.early) {}

  [[nodiscard]] bool any() const noexcept { return copies_ != 0; }
  [[nodiscard]] std::uint32_t copies() const noexcept { return copies_; }
  [[nodiscard]] bool are_released_early() const noexcept { return early_; }
  template <memory::Memory M>
  void allocate(M& memory) {
    if (any())
      base_ = memory.allocate(memory::Medium::kDram, engines::Latches::bytes_for(stock_from() + stocks()),
                              {.name = "row locks", .backing = memory::Backing::kSparse});
  }

  [[nodiscard]] memory::Address deliveries(std::uint64_t warehouse, std::uint32_t copy) const noexcept {
    return at(number(warehouse, copy));
  }
  [[nodiscard]] memory::Address warehouse(std::uint64_t warehouse, std::uint32_t copy) const noexcept {
    return at(warehouses() + number(warehouse, copy));
  }
  [[nodiscard]] memory::Address district(std::uint64_t warehouse, std::uint64_t district,
                                         std::uint32_t copy) const noexcept {
    return at(2 * warehouses() + number(warehouse, copy) * kDistricts + district - 1);
  }
  [[nodiscard]] memory::Address customer(std::uint64_t key, std::uint32_t copy) const noexcept {
    const std::uint64_t district = number(key >> 16, copy) * kDistricts + (key >> 12 & 0xf) - 1;
    return at((2 + kDistricts) * warehouses() + district * size_.customers + (key & 0xfff) - 1);
  }
  [[nodiscard]] memory::Address stock(std::uint64_t warehouse, std::uint64_t item,
                                      std::uint32_t copy) const noexcept {
    return at(stock_from() + number(warehouse, copy) * size_.items + item - 1);
  }

 private:
  [[nodiscard]] std::uint64_t warehouses() const noexcept { return std::uint64_t{size_.warehouses} * copies_; }
  [[nodiscard]] std::uint64_t number(std::uint64_t warehouse, std::uint32_t copy) const noexcept {
    return (warehouse - 1) * copies_ + copy;
  }
  [[nodiscard]] std::uint64_t stock_from() const noexcept {
    return (2 + kDistricts + std::uint64_t{kDistricts} * size_.customers) * warehouses();
  }
  [[nodiscard]] std::uint64_t stocks() const noexcept { return warehouses() * size_.items; }
  [[nodiscard]] memory::Address at(std::uint64_t row) const noexcept {
    return base_ + row * memory::kLineBytes;
  }

  Cardinalities size_;
  std::uint32_t copies_ = 0;
  bool early_ = false;
  memory::Address base_ = 0;
};

/// The rows that one transaction has locked: until the end of the scope, which lies behind its commit.
template <memory::Memory M>
class HeldRows {
 public:
  HeldRows(M& memory, const RowLocks& locks, Random& random)
      : memory_(memory),
        locks_(locks),
        copy_(locks.copies() < 2 ? 0 : static_cast<std::uint32_t>(random.below(locks.copies()))) {}
  HeldRows(const HeldRows&) = delete;
  HeldRows& operator=(const HeldRows&) = delete;
  ~HeldRows() noexcept(false) { release(); }
  void release() {
    if (held_ == 0)
      return;
    const memory::InSection section(memory_, memory::Section::kLocks);
    while (held_ != 0)
      rows_[--held_].done();
  }

  [[nodiscard]] bool any() const noexcept { return locks_.any(); }
  void deliveries(std::uint64_t warehouse) { hold(locks_.deliveries(warehouse, copy_), LatchMode::kExclusive); }
  void warehouse(std::uint64_t warehouse, LatchMode mode) { hold(locks_.warehouse(warehouse, copy_), mode); }
  void district(std::uint64_t warehouse, std::uint64_t district) {
    hold(locks_.district(warehouse, district, copy_), LatchMode::kExclusive);
  }
  void customer(std::uint64_t key, LatchMode mode) { hold(locks_.customer(key, copy_), mode); }
  void stock(std::uint64_t warehouse, std::uint64_t item) {
    hold(locks_.stock(warehouse, item, copy_), LatchMode::kExclusive);
  }

 private:
  /// A new order: warehouse, district and customer, and 15 rows of stock.
  static constexpr std::size_t kMost = 18;

  void hold(memory::Address row, LatchMode mode) {
    // An order may have several lines of one item.
    if (!locks_.any() || row == latest_)
      return;
    ensure(row > latest_ && held_ < kMost,
           "rows of TPC-C are locked in another order than that of their addresses");
    const memory::InSection section(memory_, memory::Section::kLocks);
    rows_[held_] = engines::HeldLatch<M>(memory_, row, mode);
    ++held_;
    latest_ = row;
  }

  M& memory_;
  const RowLocks& locks_;
  std::uint32_t copy_;
  memory::Address latest_ = 0;
  std::size_t held_ = 0;
  std::array<engines::HeldLatch<M>, kMost> rows_;
};

}  // namespace pmsim::workloads::oltp::tpcc
