#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"

/// What an algorithm of one's own is written against that lives outside of the project: a class template over
/// the memory, in one header. It is crashed and timed in simulation, and measured on this machine, from one
/// source (docs/prototype.md, "In C++"):
///
///     template <pmsim::prototype::Memory M>
///     class Log {
///      public:
///       void create(M& memory);                           // allocates all regions, and then formats them
///       void run(M& memory, const Operation& operation);  // acknowledged when it returns
///       Content recover(M& memory);                       // makes usable what a crash has left
///     };
///
/// Operation and Content are what pybind11 converts: numbers, Bytes, std::string, containers of these. A
/// content std::nullopt says that create() had not been done. run() may return Acknowledged. What throws in the
/// memory passes through the algorithm, so its methods are not noexcept.
namespace pmsim::prototype {

using memory::Address;
using memory::FlushKind;
using memory::LatchMode;
using memory::Medium;
using memory::Site;

/// `bytes` of Python.
using Bytes = std::vector<std::byte>;

/// When an operation is acknowledged: at its end, or with a later one, as in a group of commits.
enum class Acknowledged : std::uint8_t { kNow, kLater };

/// The concept memory::Memory, with what a program needs to begin:
///  - allocate: the address of a new region, all zero. Its name finds it again.
///  - region: the address of the region of this name, for recovery. Throws where there is none.
///  - thread: which thread runs the operation, from 0.
/// Sites may be left out: a point is the line that calls it.
template <typename M>
concept Memory =
    memory::Memory<M> && requires(M memory, Medium medium, std::uint64_t bytes, std::string_view name) {
      { memory.allocate(medium, bytes, name) } -> std::same_as<Address>;
      { memory.region(name) } -> std::same_as<Address>;
      { memory.thread() } -> std::same_as<std::uint32_t>;
    };

}  // namespace pmsim::prototype
