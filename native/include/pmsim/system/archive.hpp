#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "pmsim/core/error.hpp"

namespace pmsim::system {

/// Plain values as bytes and back, in the order of the calls: the state of a long run between two processes of
/// one build on one kind of machine. Throws ConfigError where the bytes end early.
class Archive {
 public:
  /// Writes.
  Archive() = default;
  /// Reads `bytes`, which must outlive it.
  explicit Archive(std::string_view bytes) : reading_(true), left_(bytes) {}

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  void value(T& value) {
    if (!reading_) {
      written_.append(reinterpret_cast<const char*>(&value), sizeof value);
      return;
    }
    if (left_.size() < sizeof value)
      throw ConfigError("state: it ends early; it is damaged or of another version");
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
  }

  /// A vector or deque of values.
  template <typename Container>
  void sequence(Container& container) {
    std::uint64_t size = container.size();
    value(size);
    if (reading_) {
      if (size > left_.size())
        throw ConfigError("state: it ends early; it is damaged or of another version");
      container.resize(static_cast<std::size_t>(size));
    }
    for (auto& element : container)
      value(element);
  }

  [[nodiscard]] bool at_end() const noexcept { return left_.empty(); }
  [[nodiscard]] const std::string& written() const noexcept { return written_; }

 private:
  bool reading_ = false;
  std::string_view left_;
  std::string written_;
};

}  // namespace pmsim::system
