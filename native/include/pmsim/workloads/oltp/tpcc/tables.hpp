#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/workloads/oltp/tpcc/row_locks.hpp"
#include "pmsim/workloads/oltp/tpcc/rows.hpp"

namespace pmsim::workloads::oltp::tpcc {

struct TableIds {
  engines::TableId warehouse, district, customer, history, new_order, order, order_line, item, stock;
  engines::TableId customer_by_name, order_by_customer;
};

/// The tables as the transactions see them: typed rows and parts of rows.
template <memory::Memory M>
struct Tables {
  M& memory;
  engines::Engine<M>& engine;
  const TableIds& ids;
  HeldRows<M>& locks;
  std::int64_t rows = 0;  ///< inserted less erased

  /// The first `bytes` of T's bytes at `offset` of the row; T is the row or a member of it.
  template <typename T>
  [[nodiscard]] bool find(engines::TableId table, std::uint64_t key, T& into, std::size_t offset = 0,
                          std::size_t bytes = sizeof(T)) {
    static_assert(std::is_trivially_copyable_v<T>);
    return engine.read(memory, table, key, static_cast<std::uint32_t>(offset),
                       std::as_writable_bytes(std::span(&into, 1)).first(bytes));
  }
  /// A row that has to be there.
  template <typename T>
  [[nodiscard]] T read(engines::TableId table, std::uint64_t key, std::size_t offset = 0,
                       std::size_t bytes = sizeof(T)) {
    T value{};
    ensure(find(table, key, value, offset, bytes), "an engine has lost a row of TPC-C");
    return value;
  }
  template <typename T>
  void update(engines::TableId table, std::uint64_t key, const T& value, std::size_t offset = 0) {
    static_assert(std::is_trivially_copyable_v<T>);
    ensure(engine.update(memory, table, key, static_cast<std::uint32_t>(offset),
                         std::as_bytes(std::span(&value, 1))),
           "an engine has lost a row of TPC-C");
  }
  template <typename T>
  void insert(engines::TableId table, std::uint64_t key, const T& row) {
    ensure(engine.insert(memory, table, key, std::as_bytes(std::span(&row, 1))),
           "an engine refuses a new key of TPC-C");
    ++rows;
  }
  /// A row that has to be there.
  void erase(engines::TableId table, std::uint64_t key) {
    ensure(engine.erase(memory, table, key), "an engine has lost a row of TPC-C");
    --rows;
  }
  /// Calls visit(key, row) for the rows with keys in [from, to], in order, until it returns false. The lambda
  /// may hold two references: more would be allocated on the heap, once per scan.
  template <typename T, typename Visit>
  void scan(engines::TableId table, std::uint64_t from, std::uint64_t to, Visit&& visit,
            engines::ScanMode mode = engines::ScanMode::kGrained) {
    struct State {
      std::uint64_t to;
      Visit& visit;
    } state{to, visit};
    engine.scan(memory, table, from, ~std::uint64_t{0}, 0, sizeof(T), mode,
                [&state](std::uint64_t key, std::span<const std::byte> bytes) {
                  if (key > state.to)
                    return false;
                  T row;
                  std::memcpy(&row, bytes.data(), sizeof row);
                  return state.visit(key, row);
                });
  }
};

}  // namespace pmsim::workloads::oltp::tpcc
