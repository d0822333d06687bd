#pragma once

#include <cstddef>
#include <cstdint>

#include "pmsim/workloads/oltp/tpcc/new_order.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// Clause 2.7: delivers the oldest new order of each district of a warehouse, here in one transaction, as the
/// clause allows; districts without one are skipped.
template <memory::Memory M>
Outcome delivery(Tables<M>& tables, const Terminal& terminal, Random& random) {
  const TableIds& ids = tables.ids;
  const std::uint32_t warehouse = any_warehouse(terminal, random);
  const auto carrier = static_cast<std::int32_t>(uniform(random, 1, 10));
  const std::int64_t date = ++terminal.clock;
  std::uint32_t delivered = 0;
  tables.locks.deliveries(warehouse);
  for (std::uint32_t district = 1; district <= kDistricts; ++district) {
    std::uint64_t key = 0;
    tables.template scan<NewOrder>(ids.new_order, order_key(warehouse, district, 0),
                                   order_key(warehouse, district, kMaxOrder),
                                   [&key](std::uint64_t found, const NewOrder&) {
                                     key = found;
                                     return false;
                                   });
    if (key == 0)
      continue;
    tables.erase(ids.new_order, key);
    const auto order = tables.template read<Order>(ids.order, key);
    tables.update(ids.order, key, carrier, offsetof(Order, carrier));
    struct {
      std::int64_t total = 0;
      std::int32_t count = 0;
    } lines;
    tables.template scan<OrderLine>(ids.order_line, order_line_key(key, 0), order_line_key(key, 15),
                                    [&lines, &order](std::uint64_t, const OrderLine& row) {
                                      lines.total += row.amount;
                                      return ++lines.count < order.lines;
                                    });
    ensure(lines.count == order.lines, "an order of TPC-C has lost lines");
    for (std::int32_t line = 1; line <= lines.count; ++line)
      tables.update(ids.order_line, order_line_key(key, static_cast<std::uint64_t>(line)), date,
                    offsetof(OrderLine, delivery_date));
    const std::uint64_t customer = key >> 28 << 12 | static_cast<std::uint64_t>(order.customer);
    tables.locks.customer(customer, LatchMode::kExclusive);
    auto account = tables.template read<CustomerAccount>(ids.customer, customer);
    account.balance += lines.total;
    ++account.deliveries;
    tables.update(ids.customer, customer, account);
    ++delivered;
  }
  tables.engine.commit(tables.memory);
  return {delivered * static_cast<std::uint32_t>(sizeof(Order)), true};
}

}  // namespace pmsim::workloads::oltp::tpcc
