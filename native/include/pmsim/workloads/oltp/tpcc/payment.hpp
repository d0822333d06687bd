#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "pmsim/workloads/oltp/tpcc/customer_lookup.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// Clause 2.5. In 15 of 100 cases the customer belongs to another warehouse, where there is one.
template <memory::Memory M>
Outcome payment(Tables<M>& tables, const Terminal& terminal, Random& random) {
  const TableIds& ids = tables.ids;
  const std::uint32_t warehouse = any_warehouse(terminal, random);
  const std::uint32_t district = uniform(random, 1, kDistricts);
  const bool remote = terminal.size.warehouses > 1 && random.below(100) < 15;
  const std::uint32_t customer_warehouse = remote ? other_warehouse(terminal, random, warehouse) : warehouse;
  const std::uint32_t customer_district = remote ? uniform(random, 1, kDistricts) : district;
  const std::int64_t amount = uniform(random, 1'00, 5'000'00);

  tables.locks.warehouse(warehouse, LatchMode::kExclusive);
  const auto store = tables.template read<Warehouse>(ids.warehouse, warehouse);
  tables.update(ids.warehouse, warehouse, store.ytd + amount, offsetof(Warehouse, ytd));
  const std::uint64_t district_id = district_key(warehouse, district);
  tables.locks.district(warehouse, district);
  const auto area = tables.template read<District>(ids.district, district_id);
  tables.update(ids.district, district_id, area.ytd + amount, offsetof(District, ytd));

  const std::uint64_t key = find_customer(tables, terminal, random, customer_warehouse, customer_district);
  tables.locks.customer(key, LatchMode::kExclusive);
  const auto buyer = tables.template read<Customer>(ids.customer, key, 0, offsetof(Customer, data));
  CustomerAccount account = buyer.account;
  account.balance -= amount;
  account.ytd_payment += amount;
  ++account.payments;
  tables.update(ids.customer, key, account);
  if (std::memcmp(buyer.credit, "BC", 2) == 0) {
    using Data = std::array<char, sizeof(Customer::data)>;
    const auto before = tables.template read<Data>(ids.customer, key, offsetof(Customer, data));
    Data after{};
    const int head = std::snprintf(
        after.data(), after.size(), "%llu %llu %llu %u %u %lld ", static_cast<unsigned long long>(key & 0xfff),
        static_cast<unsigned long long>(customer_district), static_cast<unsigned long long>(customer_warehouse),
        district, warehouse, static_cast<long long>(amount));
    std::memcpy(after.data() + head, before.data(), after.size() - static_cast<std::size_t>(head));
    tables.update(ids.customer, key, after, offsetof(Customer, data));
  }
  History row{.date = ++terminal.clock,
              .customer = static_cast<std::uint32_t>(key),
              .district = static_cast<std::uint32_t>(district_id),
              .amount = static_cast<std::int32_t>(amount),
              .data = {}};
  std::memcpy(row.data, store.name, sizeof store.name);
  std::memcpy(row.data + sizeof store.name + 4, area.name, sizeof area.name);
  tables.insert(ids.history, terminal.next_history++, row);
  tables.engine.commit(tables.memory);
  return {sizeof(History), true};
}

}  // namespace pmsim::workloads::oltp::tpcc
