#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "pmsim/workloads/oltp/tpcc/tables.hpp"
#include "pmsim/workloads/oltp/transactions.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// What the terminals know besides the tables.
struct Terminal {
  const Cardinalities& size;
  const NurandConstants& constants;
  std::int64_t& clock;          ///< dates: each transaction has its own
  std::uint64_t& next_history;  ///< HISTORY has no primary key: a sequence
  std::vector<std::uint64_t>& scratch;
};

[[nodiscard]] inline std::uint32_t any_warehouse(const Terminal& terminal, Random& random) {
  return uniform(random, 1, terminal.size.warehouses);
}
[[nodiscard]] inline std::uint32_t other_warehouse(const Terminal& terminal, Random& random,
                                                   std::uint32_t home) {
  const std::uint32_t other = uniform(random, 1, terminal.size.warehouses - 1);
  return other < home ? other : other + 1;
}
[[nodiscard]] inline std::uint32_t any_customer(const Terminal& terminal, Random& random) {
  return nurand(random, 1023, terminal.constants.customer, 1, terminal.size.customers);
}

/// Clause 2.4. One transaction in a hundred asks for an item that does not exist, at its last line, and rolls
/// back; one line in a hundred is supplied by another warehouse, where there is one.
template <memory::Memory M>
Outcome new_order(Tables<M>& tables, const Terminal& terminal, Random& random) {
  const std::uint32_t warehouse = any_warehouse(terminal, random);
  const std::uint32_t district = uniform(random, 1, kDistricts);
  const std::uint64_t district_id = district_key(warehouse, district);
  const std::uint64_t customer = customer_key(warehouse, district, any_customer(terminal, random));
  const std::uint32_t lines = uniform(random, 5, 15);
  const bool fails = random.below(100) == 0;
  struct Line {
    std::uint32_t item, supply, quantity;
  };
  std::array<Line, 15> asked{};
  bool all_local = true;
  for (std::uint32_t line = 0; line < lines; ++line) {
    const bool remote = terminal.size.warehouses > 1 && random.below(100) == 0;
    asked[line] = {nurand(random, 8191, terminal.constants.item, 1, terminal.size.items),
                   remote ? other_warehouse(terminal, random, warehouse) : warehouse, uniform(random, 1, 10)};
    all_local = all_local && !remote;
  }
  if (fails)
    asked[lines - 1].item = terminal.size.items + 1;

  // Rows of stock in the order of their locks. The item that does not exist stays the last one.
  if (tables.locks.any())
    std::sort(asked.begin(), asked.begin() + lines - (fails ? 1 : 0), [](const Line& one, const Line& other) {
      return std::tie(one.supply, one.item) < std::tie(other.supply, other.item);
    });

  const TableIds& ids = tables.ids;
  tables.locks.warehouse(warehouse, LatchMode::kShared);
  const auto tax = tables.template read<std::int32_t>(ids.warehouse, warehouse, offsetof(Warehouse, tax));
  tables.locks.district(warehouse, district);
  struct {
    std::int32_t next_order, tax;
  } head = tables.template read<decltype(head)>(ids.district, district_id, offsetof(District, next_order));
  const auto order = static_cast<std::uint64_t>(head.next_order);
  tables.update(ids.district, district_id, head.next_order + 1, offsetof(District, next_order));
  // Exclusively: its latest order will be another one.
  tables.locks.customer(customer, LatchMode::kExclusive);
  struct {
    std::int32_t discount;
    char credit[2], last[16];
  } buyer = tables.template read<decltype(buyer)>(ids.customer, customer, offsetof(Customer, discount));

  const std::uint64_t key = order_key(warehouse, district, order);
  const Order row{.entry_date = ++terminal.clock,
                  .customer = static_cast<std::int32_t>(customer & 0xfff),
                  .carrier = 0,
                  .lines = static_cast<std::int32_t>(lines),
                  .all_local = all_local ? 1 : 0};
  tables.insert(ids.order, key, row);
  tables.insert(ids.new_order, key, NewOrder{});
  tables.insert(ids.order_by_customer, customer_order_key(customer, order), Reference{order});

  std::int64_t total = 0;
  for (std::uint32_t line = 0; line < lines; ++line) {
    const Line& wanted = asked[line];
    Item item{};
    if (!tables.find(ids.item, wanted.item, item)) {
      tables.engine.abort(tables.memory);
      return {0, false};
    }
    // One range of the row: counters, data, and the district's text, with those of the districts before it.
    tables.locks.stock(wanted.supply, wanted.item);
    const std::uint64_t shelf = stock_key(wanted.supply, wanted.item);
    const auto stock = tables.template read<Stock>(
        ids.stock, shelf, 0, offsetof(Stock, district_info) + district * sizeof(Stock::district_info[0]));
    StockLevel level = stock.level;
    const auto quantity = static_cast<std::int32_t>(wanted.quantity);
    level.quantity += level.quantity >= quantity + 10 ? -quantity : 91 - quantity;
    level.ytd += quantity;
    ++level.orders;
    level.remote_orders += wanted.supply == warehouse ? 0 : 1;
    tables.update(ids.stock, shelf, level);
    OrderLine placed{};
    placed.amount = quantity * item.price;
    placed.item = static_cast<std::int32_t>(wanted.item);
    placed.supply_warehouse = static_cast<std::uint16_t>(wanted.supply);
    placed.quantity = static_cast<std::uint8_t>(quantity);
    std::memcpy(placed.district_info, stock.district_info[district - 1], sizeof placed.district_info);
    tables.insert(ids.order_line, order_line_key(key, line + 1), placed);
    total += placed.amount;
  }
  total = total * (10'000 - buyer.discount) / 10'000 * (10'000 + tax + head.tax) / 10'000;
  static_cast<void>(total);  // shown on the terminal
  tables.engine.commit(tables.memory);
  return {lines * static_cast<std::uint32_t>(sizeof(OrderLine)), true};
}

}  // namespace pmsim::workloads::oltp::tpcc
