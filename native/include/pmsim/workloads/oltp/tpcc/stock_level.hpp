#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pmsim/workloads/oltp/tpcc/new_order.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// Clause 2.8: how many items of a district's last 20 orders are low in stock.
template <memory::Memory M>
Outcome stock_level(Tables<M>& tables, const Terminal& terminal, Random& random) {
  const TableIds& ids = tables.ids;
  const std::uint32_t warehouse = any_warehouse(terminal, random);
  const std::uint32_t district = uniform(random, 1, kDistricts);
  const auto threshold = static_cast<std::int32_t>(uniform(random, 10, 20));
  const auto next = static_cast<std::uint64_t>(tables.template read<std::int32_t>(
      ids.district, district_key(warehouse, district), offsetof(District, next_order)));
  std::vector<std::uint64_t>& items = terminal.scratch;
  items.clear();
  const std::uint64_t first = next > 20 ? next - 20 : 1;
  tables.template scan<OrderLine>(ids.order_line, order_line_key(order_key(warehouse, district, first), 0),
                                  order_line_key(order_key(warehouse, district, next - 1), 15),
                                  [&items](std::uint64_t, const OrderLine& row) {
                                    items.push_back(static_cast<std::uint64_t>(row.item));
                                    return true;
                                  });
  std::ranges::sort(items);
  items.erase(std::ranges::unique(items).begin(), items.end());
  std::uint32_t low = 0;
  for (const std::uint64_t item : items) {
    const auto quantity = tables.template read<std::int32_t>(ids.stock, stock_key(warehouse, item),
                                                             offsetof(StockLevel, quantity));
    low += quantity < threshold ? 1U : 0U;
  }
  tables.engine.commit(tables.memory);
  return {low == 0 ? 0U : static_cast<std::uint32_t>(sizeof low), true};
}

}  // namespace pmsim::workloads::oltp::tpcc
