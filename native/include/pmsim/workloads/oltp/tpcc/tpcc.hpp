#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/workloads/oltp/tpcc/consistency.hpp"
#include "pmsim/workloads/oltp/tpcc/delivery.hpp"
#include "pmsim/workloads/oltp/tpcc/new_order.hpp"
#include "pmsim/workloads/oltp/tpcc/order_status.hpp"
#include "pmsim/workloads/oltp/tpcc/payment.hpp"
#include "pmsim/workloads/oltp/tpcc/population.hpp"
#include "pmsim/workloads/oltp/tpcc/stock_level.hpp"

namespace pmsim::workloads::oltp::tpcc {

enum class Type : std::uint8_t { kNewOrder, kPayment, kOrderStatus, kDelivery, kStockLevel };
inline constexpr std::array<std::string_view, 5> kTypeNames{"new_order", "payment", "order_status", "delivery",
                                                            "stock_level"};

/// The mix of clause 5.2.3: at least 43 % payments and 4 % of each of the three others; new orders are the
/// rest.
[[nodiscard]] inline Type any_type(Random& random) {
  const std::uint64_t dice = random.below(100);
  if (dice < 45)
    return Type::kNewOrder;
  if (dice < 88)
    return Type::kPayment;
  return dice < 92 ? Type::kOrderStatus : dice < 96 ? Type::kDelivery : Type::kStockLevel;
}

/// TPC-C without think times, keying times and terminals (van Renen et al. 2018, section 5.2): each transaction
/// comes from any warehouse.
template <memory::Memory M>
class Tpcc final : public Transactions<M> {
 public:
  Tpcc(const Cardinalities& size, std::uint64_t seed, const LockOptions& locks = {})
      : population_(size, seed), locks_(size, locks) {
    if (size.warehouses == 0 || size.warehouses > kMaxWarehouses)
      throw ConfigError("warehouses: " + std::to_string(size.warehouses) + "; choose 1 to 65535");
    ensure(size.customers >= 30 && size.customers <= 3'000 && size.items >= 100 && size.items <= 100'000,
           "cardinalities of TPC-C that its keys cannot hold");
  }

  void load(M& memory, engines::Engine<M>& engine, double fill, Poll poll) override {
    ids_ = population_.load(memory, engine, fill, poll, rows_);
    next_history_ = population_.history_rows();
    locks_.allocate(memory);
  }

  Outcome transaction(M& memory, engines::Engine<M>& engine, Random& random) override {
    return run(any_type(random), memory, engine, random);
  }
  Outcome run(Type type, M& memory, engines::Engine<M>& engine, Random& random) {
    HeldRows<M> locks(memory, locks_, random);
    Tables<M> tables{memory, engine, ids_, locks};
    const Terminal terminal{population_.size(), population_.constants(), clock_, next_history_, scratch_};
    engine.begin(memory);
    if (locks_.are_released_early())
      engine.on_placed([&locks] { locks.release(); });
    const Outcome outcome = run(type, tables, terminal, random);
    if (outcome.committed)
      rows_ += static_cast<std::uint64_t>(tables.rows);
    return outcome;
  }

  std::string check(M& memory, engines::Engine<M>& engine) override {
    const RowLocks none;
    Random unused(0);
    HeldRows<M> locks(memory, none, unused);
    Tables<M> tables{memory, engine, ids_, locks};
    engine.begin(memory);
    std::string broken = broken_condition(tables, population_.size());
    engine.commit(memory);
    return broken;
  }

  [[nodiscard]] std::vector<engines::TableId> tables() const override {
    return {
        ids_.warehouse,  ids_.district, ids_.customer, ids_.history,          ids_.new_order,        ids_.order,
        ids_.order_line, ids_.item,     ids_.stock,    ids_.customer_by_name, ids_.order_by_customer};
  }
  [[nodiscard]] std::uint64_t rows() const override { return rows_; }
  [[nodiscard]] const TableIds& ids() const noexcept { return ids_; }

 private:
  [[nodiscard]] static Outcome run(Type type, Tables<M>& tables, const Terminal& terminal, Random& random) {
    switch (type) {
      case Type::kNewOrder:
        return new_order(tables, terminal, random);
      case Type::kPayment:
        return payment(tables, terminal, random);
      case Type::kOrderStatus:
        return order_status(tables, terminal, random);
      case Type::kDelivery:
        return delivery(tables, terminal, random);
      case Type::kStockLevel:
        return stock_level(tables, terminal, random);
    }
    return {};
  }

  Population population_;
  RowLocks locks_;
  TableIds ids_{};
  std::int64_t clock_ = Population::kLoadDate;
  std::uint64_t next_history_ = 0;
  std::uint64_t rows_ = 0;  ///< of all tables, those of indexes included
  std::vector<std::uint64_t> scratch_;
};

}  // namespace pmsim::workloads::oltp::tpcc
