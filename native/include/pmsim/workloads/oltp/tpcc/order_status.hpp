#pragma once

#include <cstddef>
#include <cstdint>

#include "pmsim/workloads/oltp/tpcc/customer_lookup.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// Clause 2.6: a customer's latest order and its lines.
template <memory::Memory M>
Outcome order_status(Tables<M>& tables, const Terminal& terminal, Random& random) {
  const TableIds& ids = tables.ids;
  const std::uint32_t warehouse = any_warehouse(terminal, random);
  const std::uint32_t district = uniform(random, 1, kDistricts);
  const std::uint64_t customer = find_customer(tables, terminal, random, warehouse, district);
  tables.locks.customer(customer, LatchMode::kShared);
  static_cast<void>(tables.template read<Customer>(ids.customer, customer, 0, offsetof(Customer, address)));
  std::uint64_t order = 0;
  tables.template scan<Reference>(ids.order_by_customer, customer << 28, customer << 28 | kMaxOrder,
                                  [&order](std::uint64_t, const Reference& row) {
                                    order = row.id;
                                    return false;
                                  });
  ensure(order != 0, "a customer of TPC-C has no order");
  const std::uint64_t key = order_key(warehouse, district, order);
  const auto head = tables.template read<Order>(ids.order, key);
  std::int32_t lines = 0;
  tables.template scan<OrderLine>(
      ids.order_line, order_line_key(key, 0), order_line_key(key, 15),
      [&lines, &head](std::uint64_t, const OrderLine&) { return ++lines < head.lines; });
  ensure(lines == head.lines, "an order of TPC-C has lost lines");
  tables.engine.commit(tables.memory);
  return {static_cast<std::uint32_t>(sizeof(Order)) +
              static_cast<std::uint32_t>(lines) * static_cast<std::uint32_t>(sizeof(OrderLine)),
          true};
}

}  // namespace pmsim::workloads::oltp::tpcc
