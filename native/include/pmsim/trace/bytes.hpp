#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pmsim/core/error.hpp"

namespace pmsim::trace {

/// Zigzag: small magnitudes of either sign become small numbers.
[[nodiscard]] constexpr std::uint64_t zigzag(std::uint64_t difference) noexcept {
  return (difference << 1) ^ (0 - (difference >> 63));
}
[[nodiscard]] constexpr std::uint64_t unzigzag(std::uint64_t value) noexcept {
  return (value >> 1) ^ (0 - (value & 1));
}

[[nodiscard]] constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
  std::size_t bytes = 1;
  while ((value >>= 7) != 0)
    ++bytes;
  return bytes;
}

/// Appends little-endian integers and LEB128 varints.
class ByteWriter {
 public:
  template <std::unsigned_integral T>
  void fixed(T value) {
    for (std::size_t byte = 0; byte < sizeof(T); ++byte) {
      data_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * byte)));
    }
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      data_.push_back(static_cast<std::byte>(value | 0x80));
    data_.push_back(static_cast<std::byte>(value));
  }
  void bytes(std::span<const std::byte> data) { data_.insert(data_.end(), data.begin(), data.end()); }
  void clear() noexcept { data_.clear(); }
  [[nodiscard]] std::span<const std::byte> view() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return data_.size(); }

 private:
  std::vector<std::byte> data_;
};

/// What a reader throws when bytes run out or make no sense; the caller knows the file's name.
struct Malformed {
  const char* what;
};

/// Reads what ByteWriter wrote; never past the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> data) noexcept : data_(data) {}

  template <std::unsigned_integral T>
  [[nodiscard]] T fixed() {
    const auto raw = bytes(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t byte = 0; byte < sizeof(T); ++byte)
      value |= std::to_integer<std::uint64_t>(raw[byte]) << (8 * byte);
    return static_cast<T>(value);
  }
  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == data_.size())
        break;
      const auto byte = std::to_integer<std::uint64_t>(data_[at_++]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
    throw Malformed{"a number is cut short"};
  }
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t count) {
    if (count > data_.size() - at_)
      throw Malformed{"a record is cut short"};
    at_ += count;
    return data_.subspan(at_ - count, count);
  }
  [[nodiscard]] bool done() const noexcept { return at_ == data_.size(); }

 private:
  std::span<const std::byte> data_;
  std::size_t at_ = 0;
};

}  // namespace pmsim::trace
