#pragma once

#include <cstdint>
#include <type_traits>

namespace pmsim::workloads::oltp::tpcc {

/// Rows of the nine tables (clause 1.3) without their primary keys. Texts have the widths of the specification,
/// amounts are whole cents, rates ten-thousandths. What a transaction reads together stands together, because
/// an engine is asked for one range of a row.

struct Address {
  char street_1[20];
  char street_2[20];
  char city[20];
  char state[2];
  char zip[9];
};

struct Warehouse {
  std::int64_t ytd;
  std::int32_t tax;
  char name[10];
  Address address;
};

struct District {
  std::int64_t ytd;
  std::int32_t next_order;
  std::int32_t tax;
  char name[10];
  Address address;
};

struct CustomerAccount {
  std::int64_t balance;
  std::int64_t ytd_payment;
  std::int32_t payments;
  std::int32_t deliveries;
};

struct Customer {
  CustomerAccount account;
  std::int64_t credit_limit;
  std::int64_t since;
  std::int32_t discount;
  char credit[2];
  char last[16];
  char middle[2];
  char first[16];
  Address address;
  char phone[16];
  char data[500];
};

struct History {
  std::int64_t date;
  std::uint32_t customer;  ///< its key: C_ID, C_D_ID, C_W_ID
  std::uint32_t district;  ///< D_ID, W_ID
  std::int32_t amount;
  char data[24];
};

/// All its columns are in the key; engines have no rows without a payload.
struct NewOrder {
  std::uint64_t unused;
};

struct Order {
  std::int64_t entry_date;
  std::int32_t customer;
  std::int32_t carrier;  ///< 0: none yet
  std::int32_t lines;
  std::int32_t all_local;
};

struct OrderLine {
  std::int64_t delivery_date;  ///< 0: not delivered
  std::int32_t amount;
  std::int32_t item;
  std::uint16_t supply_warehouse;
  std::uint8_t quantity;
  char district_info[24];
};

struct Item {
  std::int32_t price;
  std::int32_t image;
  char name[24];
  char data[50];
};

struct StockLevel {
  std::int32_t ytd;
  std::int32_t quantity;
  std::int32_t orders;
  std::int32_t remote_orders;
};

struct Stock {
  StockLevel level;
  char data[50];
  char district_info[10][24];
};

/// Of the secondary indexes: the last part of the primary key.
struct Reference {
  std::uint64_t id;
};

static_assert(std::is_trivially_copyable_v<Customer> && std::is_trivially_copyable_v<Stock>);
// With the 8 bytes of a key, those tables that make up the data within 4 % of the specification's widths
// (clause 4.2.2: 655, 306 and 54 bytes); the others have 89, 95, 46, 8, 24 and 82.
static_assert(sizeof(Customer) == 672 && sizeof(Stock) == 308 && sizeof(OrderLine) == 48);
static_assert(sizeof(Warehouse) == 96 && sizeof(District) == 104 && sizeof(History) == 48);
static_assert(sizeof(NewOrder) == 8 && sizeof(Order) == 24 && sizeof(Item) == 84);

}  // namespace pmsim::workloads::oltp::tpcc
