#pragma once

#include <cstdint>

#include "pmsim/workloads/oltp/tpcc/new_order.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// The customer of a payment or an order status: by last name in 60 of 100 cases, by number in the others.
/// Returns its key. Of several customers with that name the middle one by first name is meant, rounded up
/// (clause 2.5.2.2).
template <memory::Memory M>
std::uint64_t find_customer(Tables<M>& tables, const Terminal& terminal, Random& random,
                            std::uint32_t warehouse, std::uint32_t district) {
  if (random.below(100) >= 60)
    return customer_key(warehouse, district, any_customer(terminal, random));
  const std::uint32_t name = nurand(random, 255, terminal.constants.run_name, 0, terminal.size.names() - 1);
  std::vector<std::uint64_t>& found = terminal.scratch;
  found.clear();
  const std::uint64_t from = customer_name_key(warehouse, district, name, 0, 0);
  const std::uint64_t to = from | 0xffff'ffffULL;
  tables.template scan<Reference>(tables.ids.customer_by_name, from, to,
                                  [&found](std::uint64_t, const Reference& row) {
                                    found.push_back(row.id);
                                    return true;
                                  });
  ensure(!found.empty(), "TPC-C finds no customer with a name that somebody has");
  return customer_key(warehouse, district, found[(found.size() + 1) / 2 - 1]);
}

}  // namespace pmsim::workloads::oltp::tpcc
