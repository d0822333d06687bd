#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pmsim::machine {

/// Values by line: open addressing with linear probing, half full at most, and deletion by moving back what
/// follows. Grows; a value is where it was until the next insertion or erasure.
template <typename Value>
class LineMap {
 public:
  explicit LineMap(std::size_t lines) : entries_(std::bit_ceil(2 * lines + 2)) {}

  [[nodiscard]] std::size_t size() const noexcept { return held_; }
  [[nodiscard]] bool empty() const noexcept { return held_ == 0; }

  /// Null where there is none.
  [[nodiscard]] Value* find(std::uint64_t line) noexcept {
    Entry& entry = entries_[place_of(line)];
    return entry.line == line ? &entry.value : nullptr;
  }

  /// The value of the line, made by default where there was none.
  Value& operator[](std::uint64_t line) {
    std::size_t at = place_of(line);
    if (entries_[at].line == line)
      return entries_[at].value;
    if (2 * (held_ + 1) > entries_.size()) {
      grow();
      at = place_of(line);
    }
    ++held_;
    entries_[at].line = line;
    return entries_[at].value;
  }

  /// The line must be there.
  void erase(std::uint64_t line) {
    std::size_t hole = place_of(line);
    for (std::size_t at = next(hole); entries_[at].line != kNoLine; at = next(at)) {
      // An entry may move back into the hole unless its home lies behind the hole.
      if (((at - home(entries_[at].line)) & mask()) >= ((at - hole) & mask())) {
        entries_[hole] = std::move(entries_[at]);
        hole = at;
      }
    }
    entries_[hole] = Entry{};
    --held_;
  }

  /// Calls visit(value) for each, in no order.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (Entry& entry : entries_) {
      if (entry.line != kNoLine)
        visit(entry.value);
    }
  }

 private:
  static constexpr std::uint64_t kNoLine = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t line = kNoLine;
    Value value{};
  };

  [[nodiscard]] std::size_t mask() const noexcept { return entries_.size() - 1; }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask(); }
  [[nodiscard]] std::size_t home(std::uint64_t line) const noexcept {
    return static_cast<std::size_t>((line * 0x9e3779b97f4a7c15ULL) >> 32) & mask();
  }
  /// Where the line is, or would be.
  [[nodiscard]] std::size_t place_of(std::uint64_t line) const noexcept {
    std::size_t at = home(line);
    while (entries_[at].line != line && entries_[at].line != kNoLine)
      at = next(at);
    return at;
  }
  void grow() {
    std::vector<Entry> before(2 * entries_.size());
    before.swap(entries_);
    for (Entry& entry : before) {
      if (entry.line != kNoLine)
        entries_[place_of(entry.line)] = std::move(entry);
    }
  }

  std::vector<Entry> entries_;
  std::size_t held_ = 0;
};

}  // namespace pmsim::machine
