#pragma once

#include <cstdint>

namespace pmsim::workloads::oltp::tpcc {

/// Keys of the tables and of the two secondary indexes: the columns of the primary key, most significant first,
/// so that what belongs together is adjacent. Warehouses have 16 bits, districts 4, customers 12, orders 28,
/// order lines 4, items 17.
inline constexpr std::uint32_t kDistricts = 10;  ///< of a warehouse
inline constexpr std::uint32_t kMaxWarehouses = 65535;
inline constexpr std::uint64_t kMaxOrder = (std::uint64_t{1} << 28) - 1;

[[nodiscard]] constexpr std::uint64_t district_key(std::uint64_t warehouse, std::uint64_t district) noexcept {
  return warehouse << 4 | district;
}
[[nodiscard]] constexpr std::uint64_t customer_key(std::uint64_t warehouse, std::uint64_t district,
                                                   std::uint64_t customer) noexcept {
  return district_key(warehouse, district) << 12 | customer;
}
/// Of ORDER and NEW-ORDER.
[[nodiscard]] constexpr std::uint64_t order_key(std::uint64_t warehouse, std::uint64_t district,
                                                std::uint64_t order) noexcept {
  return district_key(warehouse, district) << 28 | order;
}
[[nodiscard]] constexpr std::uint64_t order_line_key(std::uint64_t order_key, std::uint64_t line) noexcept {
  return order_key << 4 | line;
}
[[nodiscard]] constexpr std::uint64_t stock_key(std::uint64_t warehouse, std::uint64_t item) noexcept {
  return warehouse << 17 | item;
}
/// Orders of a customer, the latest first.
[[nodiscard]] constexpr std::uint64_t customer_order_key(std::uint64_t customer_key,
                                                         std::uint64_t order) noexcept {
  return customer_key << 28 | (kMaxOrder - order);
}
/// Customers of a district by last name (as its number) and then by first name, as far as its first four
/// letters tell; customers with the same ones follow by their number.
[[nodiscard]] constexpr std::uint64_t customer_name_key(std::uint64_t warehouse, std::uint64_t district,
                                                        std::uint64_t name, std::uint64_t first,
                                                        std::uint64_t customer) noexcept {
  return ((district_key(warehouse, district) << 10 | name) << 20 | first) << 12 | customer;
}
[[nodiscard]] constexpr std::uint64_t first_letters(const char* first) noexcept {
  std::uint64_t value = 0;
  for (int at = 0; at < 4; ++at)
    value = value << 5 | (static_cast<std::uint64_t>(first[at] - 'a') & 31);
  return value;
}

}  // namespace pmsim::workloads::oltp::tpcc
