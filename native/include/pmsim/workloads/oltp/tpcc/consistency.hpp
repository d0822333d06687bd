#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "pmsim/workloads/oltp/tpcc/tables.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// Consistency conditions 1 to 4 (clause 3.3.2), for every district, from the tables themselves. Returns the
/// first one that is broken, as a sentence; empty: none.
template <memory::Memory M>
std::string broken_condition(Tables<M>& tables, const Cardinalities& size) {
  const TableIds& ids = tables.ids;
  const auto in = [](std::uint64_t warehouse, std::uint64_t district) {
    return " in district " + std::to_string(district) + " of warehouse " + std::to_string(warehouse);
  };
  for (std::uint64_t warehouse = 1; warehouse <= size.warehouses; ++warehouse) {
    std::int64_t districts_ytd = 0;
    for (std::uint64_t district = 1; district <= kDistricts; ++district) {
      const auto row = tables.template read<District>(ids.district, district_key(warehouse, district));
      districts_ytd += row.ytd;
      const auto last = static_cast<std::uint64_t>(row.next_order) - 1;
      const std::uint64_t from = order_key(warehouse, district, 0);
      const std::uint64_t to = order_key(warehouse, district, kMaxOrder);

      struct {
        std::uint64_t last = 0, lines = 0;
      } orders;
      tables.template scan<Order>(ids.order, from, to, [&orders](std::uint64_t key, const Order& order) {
        orders.last = key & kMaxOrder;
        orders.lines += static_cast<std::uint64_t>(order.lines);
        return true;
      });
      struct {
        std::uint64_t first = 0, last = 0, count = 0;
      } open;
      tables.template scan<NewOrder>(ids.new_order, from, to, [&open](std::uint64_t key, const NewOrder&) {
        open.first = open.count++ == 0 ? key & kMaxOrder : open.first;
        open.last = key & kMaxOrder;
        return true;
      });
      std::uint64_t lines = 0;
      tables.template scan<OrderLine>(ids.order_line, order_line_key(from, 0), order_line_key(to, 15),
                                      [&lines](std::uint64_t, const OrderLine&) {
                                        ++lines;
                                        return true;
                                      });
      if (orders.last != last || (open.count != 0 && open.last != last)) {
        return "TPC-C condition 2: D_NEXT_O_ID - 1 = " + std::to_string(last) + ", the last order is " +
               std::to_string(orders.last) + " and the last new order " + std::to_string(open.last) +
               in(warehouse, district);
      }
      if (open.count != 0 && open.last - open.first + 1 != open.count) {
        return "TPC-C condition 3: " + std::to_string(open.count) + " new orders from " +
               std::to_string(open.first) + " to " + std::to_string(open.last) + in(warehouse, district);
      }
      if (orders.lines != lines) {
        return "TPC-C condition 4: orders have " + std::to_string(orders.lines) + " lines, there are " +
               std::to_string(lines) + in(warehouse, district);
      }
    }
    const auto ytd = tables.template read<std::int64_t>(ids.warehouse, warehouse);
    if (ytd != districts_ytd) {
      return "TPC-C condition 1: W_YTD = " + std::to_string(ytd) + ", its districts have " +
             std::to_string(districts_ytd) + " in warehouse " + std::to_string(warehouse);
    }
  }
  return {};
}

}  // namespace pmsim::workloads::oltp::tpcc
