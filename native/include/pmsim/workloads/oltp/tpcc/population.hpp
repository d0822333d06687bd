#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/core/scatter.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/workloads/oltp/tpcc/tables.hpp"

namespace pmsim::workloads::oltp::tpcc {

/// The initial population (clause 4.3.3), every row a function of its key and the seed, so that tables can be
/// written one by one in the order of their keys.
class Population {
 public:
  static constexpr std::int64_t kLoadDate = 1;

  Population(const Cardinalities& size, std::uint64_t seed) : size_(size), seed_(seed), constants_(seed) {}

  [[nodiscard]] const Cardinalities& size() const noexcept { return size_; }
  [[nodiscard]] const NurandConstants& constants() const noexcept { return constants_; }

  [[nodiscard]] Warehouse warehouse(std::uint64_t number) const {
    Random random = random_of(1, number);
    Warehouse row{};
    row.ytd = 300'000'00 / 3'000 * std::int64_t{size_.customers};  // ten districts of 30,000.00
    row.tax = static_cast<std::int32_t>(random.below(2001));
    letters(random, row.name, 6, 10);
    address(random, row.address);
    return row;
  }
  [[nodiscard]] District district(std::uint64_t key) const {
    Random random = random_of(2, key);
    District row{};
    row.ytd = 30'000'00 / 3'000 * std::int64_t{size_.customers};  // 10.00 from each customer's history
    row.next_order = static_cast<std::int32_t>(size_.customers) + 1;
    row.tax = static_cast<std::int32_t>(random.below(2001));
    letters(random, row.name, 6, 10);
    address(random, row.address);
    return row;
  }
  [[nodiscard]] std::uint32_t name_of(std::uint64_t customer_key) const {
    const auto number = static_cast<std::uint32_t>(customer_key & 0xfff);
    if (number <= kNames)
      return number - 1;  // every name is there
    Random random = random_of(3, customer_key);
    return nurand(random, 255, constants_.load_name, 0, kNames - 1);
  }
  [[nodiscard]] Customer customer(std::uint64_t key) const {
    Random random = random_of(4, key);
    Customer row{};
    letters(random, row.first, 8, 16);
    row.account = {-10'00, 10'00, 1, 0};
    row.credit_limit = 50'000'00;
    row.since = kLoadDate;
    row.discount = static_cast<std::int32_t>(random.below(5001));
    std::memcpy(row.credit, random.below(10) == 0 ? "BC" : "GC", 2);
    last_name(name_of(key), row.last);
    std::memcpy(row.middle, "OE", 2);
    address(random, row.address);
    digits(random, row.phone);
    letters(random, row.data, 300, 500);
    return row;
  }
  [[nodiscard]] Item item(std::uint64_t number) const {
    Random random = random_of(5, number);
    Item row{};
    row.price = static_cast<std::int32_t>(uniform(random, 1'00, 100'00));
    row.image = static_cast<std::int32_t>(uniform(random, 1, 10'000));
    letters(random, row.name, 14, 24);
    original_letters(random, row.data, 26, 50);
    return row;
  }
  [[nodiscard]] Stock stock(std::uint64_t key) const {
    Random random = random_of(6, key);
    Stock row{};
    row.level.quantity = static_cast<std::int32_t>(uniform(random, 10, 100));
    original_letters(random, row.data, 26, 50);
    for (auto& info : row.district_info)
      letters(random, info, 24, 24);
    return row;
  }
  /// Which customer of the district has placed this order: a permutation.
  [[nodiscard]] std::uint64_t customer_of(std::uint64_t district_key, std::uint64_t order) const {
    return Scatter(size_.customers, seed_ ^ mix64(district_key))(order - 1) + 1;
  }
  [[nodiscard]] std::uint32_t lines_of(std::uint64_t order_key) const {
    return 5 + static_cast<std::uint32_t>(mix64(order_key ^ mix64(seed_ + 7)) % 11);
  }
  [[nodiscard]] bool is_new(std::uint64_t order) const noexcept { return order >= size_.first_new_order(); }
  [[nodiscard]] Order order(std::uint64_t key) const {
    Random random = random_of(8, key);
    const std::uint64_t number = key & kMaxOrder;
    Order row{};
    row.entry_date = kLoadDate;
    row.customer = static_cast<std::int32_t>(customer_of(key >> 28, number));
    row.carrier = is_new(number) ? 0 : static_cast<std::int32_t>(uniform(random, 1, 10));
    row.lines = static_cast<std::int32_t>(lines_of(key));
    row.all_local = 1;
    return row;
  }
  [[nodiscard]] OrderLine order_line(std::uint64_t key) const {
    Random random = random_of(9, key);
    const bool open = is_new(key >> 4 & kMaxOrder);
    OrderLine row{};
    row.delivery_date = open ? 0 : kLoadDate;
    row.amount = open ? static_cast<std::int32_t>(uniform(random, 1, 9'999'99)) : 0;
    row.item = static_cast<std::int32_t>(uniform(random, 1, size_.items));
    row.supply_warehouse = static_cast<std::uint16_t>(key >> 36);
    row.quantity = 5;
    letters(random, row.district_info, 24, 24);
    return row;
  }

  template <memory::Memory M>
  [[nodiscard]] TableIds load(M& memory, engines::Engine<M>& engine, double fill, Poll& poll,
                              std::uint64_t& loaded) const {
    poll.expect(about_rows());
    loaded = 0;
    TableIds ids{};
    const auto load = [&]<typename Row>(const char* name, std::uint64_t rows,
                                        std::function<std::uint64_t(Row&)> next) {
      loaded += rows;
      Rows<Row> source(rows, std::move(next), poll);
      return engine.load(memory, {name, 8, sizeof(Row)}, source, fill);
    };
    const std::uint64_t districts = std::uint64_t{size_.warehouses} * kDistricts;
    const std::uint64_t customers = districts * size_.customers;
    std::uint64_t at = 0;
    ids.warehouse = load.template operator()<Warehouse>("warehouse", size_.warehouses, [&](Warehouse& row) {
      row = warehouse(++at);
      return at;
    });
    at = 0;
    ids.district = load.template operator()<District>("district", districts, [&](District& row) {
      const std::uint64_t key = nth_district(at++);
      row = district(key);
      return key;
    });
    at = 0;
    ids.customer = load.template operator()<Customer>("customer", customers, [&](Customer& row) {
      const std::uint64_t key = nth_customer(at++);
      row = customer(key);
      return key;
    });
    at = 0;
    ids.history = load.template operator()<History>("history", customers, [&](History& row) {
      const std::uint64_t key = nth_customer(at);
      Random random = random_of(10, key);
      row = {.date = kLoadDate,
             .customer = static_cast<std::uint32_t>(key),
             .district = static_cast<std::uint32_t>(key >> 12),
             .amount = 10'00,
             .data = {}};
      letters(random, row.data, 12, 24);
      return at++;
    });
    at = 0;
    const std::uint64_t new_orders = size_.customers - size_.first_new_order() + 1;
    ids.new_order = load.template operator()<NewOrder>("new_order", districts * new_orders, [&](NewOrder& row) {
      row = {};
      const std::uint64_t number = size_.first_new_order() + at % new_orders;
      return nth_district(at++ / new_orders) << 28 | number;
    });
    at = 0;
    ids.order = load.template operator()<Order>("order", customers, [&](Order& row) {
      const std::uint64_t key = nth_order(at++);
      row = order(key);
      return key;
    });
    load_order_lines(load, ids);
    at = 0;
    ids.item = load.template operator()<Item>("item", size_.items, [&](Item& row) {
      row = item(++at);
      return at;
    });
    at = 0;
    ids.stock = load.template operator()<Stock>(
        "stock", std::uint64_t{size_.warehouses} * size_.items, [&](Stock& row) {
          const std::uint64_t key = stock_key(at / size_.items + 1, at % size_.items + 1);
          ++at;
          row = stock(key);
          return key;
        });
    load_indexes(load, ids, districts);
    return ids;
  }

  [[nodiscard]] std::uint64_t history_rows() const noexcept {
    return std::uint64_t{size_.warehouses} * kDistricts * size_.customers;
  }
  /// Of all tables and indexes; how many lines an order has is drawn, ten on average.
  [[nodiscard]] std::uint64_t about_rows() const noexcept {
    const std::uint64_t customers = history_rows();  // and as many orders, and rows of each index
    return 15 * customers + std::uint64_t{size_.warehouses + 1} * size_.items;
  }

 private:
  template <typename Row>
  class Rows final : public engines::RowSource {
   public:
    Rows(std::uint64_t rows, std::function<std::uint64_t(Row&)> next, Poll& poll)
        : rows_(rows), next_(std::move(next)), poll_(poll) {}
    [[nodiscard]] std::uint64_t rows() const override { return rows_; }
    std::uint64_t next(std::span<std::byte> payload) override {
      Row row;
      const std::uint64_t key = next_(row);
      std::memcpy(payload.data(), &row, sizeof row);
      poll_.worked();
      return key;
    }

   private:
    std::uint64_t rows_;
    std::function<std::uint64_t(Row&)> next_;
    Poll& poll_;
  };

  [[nodiscard]] Random random_of(std::uint64_t table, std::uint64_t key) const noexcept {
    return Random(mix64(seed_ ^ mix64(key)) + table);
  }
  static void address(Random& random, Address& address) {
    letters(random, address.street_1, 10, 20);
    letters(random, address.street_2, 10, 20);
    letters(random, address.city, 10, 20);
    letters(random, address.state, 2, 2);
    digits(random, address.zip);
    std::memcpy(address.zip + 4, "11111", 5);
  }
  [[nodiscard]] static std::uint64_t nth_district(std::uint64_t index) noexcept {
    return district_key(index / kDistricts + 1, index % kDistricts + 1);
  }
  [[nodiscard]] std::uint64_t nth_customer(std::uint64_t index) const noexcept {
    return nth_district(index / size_.customers) << 12 | (index % size_.customers + 1);
  }
  [[nodiscard]] std::uint64_t nth_order(std::uint64_t index) const noexcept {
    return nth_district(index / size_.customers) << 28 | (index % size_.customers + 1);
  }

  template <typename Load>
  void load_order_lines(const Load& load, TableIds& ids) const {
    const std::uint64_t orders = history_rows();
    std::uint64_t lines = 0;
    for (std::uint64_t order = 0; order < orders; ++order)
      lines += lines_of(nth_order(order));
    std::uint64_t order = 0;
    std::uint32_t line = 0;
    ids.order_line = load.template operator()<OrderLine>("order_line", lines, [&](OrderLine& row) {
      if (line == lines_of(nth_order(order))) {
        ++order;
        line = 0;
      }
      const std::uint64_t key = order_line_key(nth_order(order), ++line);
      row = order_line(key);
      return key;
    });
  }

  /// One district after the other: its keys are sorted in host memory.
  template <typename Load>
  void load_indexes(const Load& load, TableIds& ids, std::uint64_t districts) const {
    std::vector<std::uint64_t> keys;
    const auto load_index = [&](const char* name, const std::function<std::uint64_t(std::uint64_t)>& key_of,
                                std::uint64_t id_mask, std::uint64_t id_flip) {
      std::uint64_t at = 0;
      return load.template operator()<Reference>(name, districts * size_.customers, [&](Reference& row) {
        if (at % size_.customers == 0) {
          keys.clear();
          for (std::uint64_t index = at; index < at + size_.customers; ++index)
            keys.push_back(key_of(index));
          std::ranges::sort(keys);
        }
        const std::uint64_t key = keys[at++ % size_.customers];
        row.id = (key & id_mask) ^ id_flip;
        return key;
      });
    };
    ids.customer_by_name = load_index(
        "customer_by_name",
        [&](std::uint64_t index) {
          const std::uint64_t key = nth_customer(index);
          const Customer row = customer(key);
          return customer_name_key(key >> 16, key >> 12 & 15, name_of(key), first_letters(row.first),
                                   key & 0xfff);
        },
        0xfff, 0);
    ids.order_by_customer = load_index(
        "order_by_customer",
        [&](std::uint64_t index) {
          const std::uint64_t key = nth_order(index);
          return customer_order_key((key >> 28) << 12 | customer_of(key >> 28, key & kMaxOrder),
                                    key & kMaxOrder);
        },
        kMaxOrder, kMaxOrder);
  }

  Cardinalities size_;
  std::uint64_t seed_;
  NurandConstants constants_;
};

}  // namespace pmsim::workloads::oltp::tpcc
