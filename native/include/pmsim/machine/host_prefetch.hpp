#pragma once

namespace pmsim::machine {

/// Asks the host for the cache line at `address`.
///
/// The empty statement is what keeps it: GCC takes a function that only looks at memory and prefetches for one
/// without any effect, and drops the calls of it.
inline void host_prefetch(const void* address) noexcept {
  __builtin_prefetch(address);
  asm volatile("" ::"r"(address));
}

}  // namespace pmsim::machine
