#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/engines/engine.hpp"

namespace pmsim::reference {

/// What every engine must behave like: maps, with a copy of them to roll back to. No memory, no time.
template <memory::Memory M>
class ReferenceEngine final : public engines::Engine<M> {
 public:
  using Payload = std::vector<std::byte>;

  engines::TableId load(M&, const engines::TableSpec& spec, engines::RowSource& rows, double) override {
    auto& table = tables_.emplace_back();
    Payload payload(spec.payload_bytes);
    for (std::uint64_t row = 0; row < rows.rows(); ++row) {
      const std::uint64_t key = rows.next(payload);
      ascending = ascending && (table.empty() || key > table.rbegin()->first);
      table.emplace_hint(table.end(), key, payload);
    }
    return static_cast<engines::TableId>(tables_.size() - 1);
  }
  void begin(M&) override { undo_.clear(); }
  void commit(M&) override { ++commits; }
  void abort(M&) override {
    ++aborts;
    while (!undo_.empty()) {
      auto& [table, key, before] = undo_.back();
      if (before.empty())
        tables_[table].erase(key);
      else
        tables_[table][key] = before;
      undo_.pop_back();
    }
  }
  bool read(M&, engines::TableId table, std::uint64_t key, std::uint32_t offset,
            std::span<std::byte> into) override {
    const auto found = tables_[table].find(key);
    if (found == tables_[table].end())
      return false;
    std::copy_n(found->second.begin() + offset, into.size(), into.begin());
    ++reads[key];
    return true;
  }
  bool update(M&, engines::TableId table, std::uint64_t key, std::uint32_t offset,
              std::span<const std::byte> bytes) override {
    const auto found = tables_[table].find(key);
    if (found == tables_[table].end())
      return false;
    undo_.emplace_back(table, key, found->second);
    std::ranges::copy(bytes, found->second.begin() + offset);
    ++updates;
    return true;
  }
  bool insert(M&, engines::TableId table, std::uint64_t key, std::span<const std::byte> payload) override {
    undo_.emplace_back(table, key, Payload{});
    return tables_[table].emplace(key, Payload(payload.begin(), payload.end())).second;
  }
  bool erase(M&, engines::TableId table, std::uint64_t key) override {
    const auto found = tables_[table].find(key);
    if (found == tables_[table].end())
      return false;
    undo_.emplace_back(table, key, found->second);
    tables_[table].erase(found);
    return true;
  }
  std::uint64_t scan(M&, engines::TableId table, std::uint64_t from, std::uint64_t limit, std::uint32_t offset,
                     std::uint32_t bytes, engines::ScanMode,
                     const typename engines::Engine<M>::Visit& visit) override {
    std::uint64_t visited = 0;
    for (auto at = tables_[table].lower_bound(from); at != tables_[table].end() && visited < limit; ++at) {
      ++visited;
      if (!visit(at->first, std::span(at->second).subspan(offset, bytes)))
        break;
    }
    scans.push_back(visited);
    return visited;
  }
  void checkpoint(M&) override {}
  void shutdown(M&) override {}
  [[nodiscard]] std::map<std::string, double> counters() const override { return {}; }
  [[nodiscard]] std::string check(M&) override { return {}; }
  [[nodiscard]] const engines::EnginePlace& place() const override { return place_; }

  [[nodiscard]] std::map<std::uint64_t, Payload>& table(engines::TableId id) { return tables_[id]; }
  [[nodiscard]] engines::TableId table_count() const { return static_cast<engines::TableId>(tables_.size()); }

  bool ascending = true;
  std::uint64_t commits = 0;
  std::uint64_t aborts = 0;
  std::uint64_t updates = 0;
  std::map<std::uint64_t, std::uint64_t> reads;
  std::vector<std::uint64_t> scans;

 private:
  struct Undo {
    engines::TableId table;
    std::uint64_t key;
    Payload before;  ///< empty: there was none
    Undo(engines::TableId t, std::uint64_t k, Payload b) : table(t), key(k), before(std::move(b)) {}
  };
  std::vector<std::map<std::uint64_t, Payload>> tables_;
  std::vector<Undo> undo_;
  engines::EnginePlace place_;
};

}  // namespace pmsim::reference
