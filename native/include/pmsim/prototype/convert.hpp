#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "pmsim/prototype.hpp"

/// Bytes are `bytes` of Python, not lists of numbers.
namespace pybind11::detail {

template <>
struct type_caster<std::vector<std::byte>> {
  PYBIND11_TYPE_CASTER(std::vector<std::byte>, const_name("bytes"));

  bool load(handle from, bool) {
    if (!isinstance<bytes>(from))
      return false;
    const auto view = reinterpret_borrow<bytes>(from).operator std::string_view();
    const auto* const data = reinterpret_cast<const std::byte*>(view.data());
    value.assign(data, data + view.size());
    return true;
  }
  static handle cast(const std::vector<std::byte>& from, return_value_policy, handle) {
    return bytes(reinterpret_cast<const char*>(from.data()), from.size()).release();
  }
};

template <std::size_t kBytes>
struct type_caster<std::array<std::byte, kBytes>> {
  using Array = std::array<std::byte, kBytes>;
  PYBIND11_TYPE_CASTER(Array, const_name("bytes"));

  bool load(handle from, bool) {
    if (!isinstance<bytes>(from))
      return false;
    const auto view = reinterpret_borrow<bytes>(from).operator std::string_view();
    if (view.size() != kBytes)
      return false;
    std::memcpy(value.data(), view.data(), kBytes);
    return true;
  }
  static handle cast(const Array& from, return_value_policy, handle) {
    return bytes(reinterpret_cast<const char*>(from.data()), kBytes).release();
  }
};

}  // namespace pybind11::detail
