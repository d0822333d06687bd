#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/wal/record.hpp"

namespace pmsim::engines::wal {

/// What has to be taken back, in the order of the log. On the host: rollback of what has left the buffer is
/// rare, and reading it is what costs.
class UndoList {
 public:
  void clear() noexcept {
    heads_.clear();
    starts_.clear();
    bytes_.clear();
  }
  void note(const Record& record) {
    if (record.head.kind == Kind::kUndone)
      return shrink(record.head.name);
    heads_.push_back(record.head);
    starts_.push_back(bytes_.size());
    bytes_.insert(bytes_.end(), record.data.begin(), record.data.end());
  }
  [[nodiscard]] std::size_t size() const noexcept { return heads_.size(); }
  [[nodiscard]] UndoRecord back() const noexcept {
    const RecordHead& head = heads_.back();
    const auto kind = head.kind == Kind::kUpdate   ? UndoRecord::Kind::kUpdate
                      : head.kind == Kind::kInsert ? UndoRecord::Kind::kInsert
                                                   : UndoRecord::Kind::kErase;
    return {kind, head.a, head.name, head.b, std::span(bytes_).subspan(starts_.back(), head.bytes)};
  }
  void shrink(std::size_t size) {
    ensure(size <= heads_.size(), "wal: more was undone than had been done");
    if (size < heads_.size())
      bytes_.resize(starts_[size]);
    heads_.resize(size);
    starts_.resize(size);
  }

 private:
  std::vector<RecordHead> heads_;
  std::vector<std::size_t> starts_;
  std::vector<std::byte> bytes_;
};

}  // namespace pmsim::engines::wal
