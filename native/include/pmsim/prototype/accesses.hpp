#pragma once

#include <cstddef>
#include <cstdint>

#include "pmsim/memory/memory.hpp"

namespace pmsim::prototype {

/// Accesses of a simulated memory, across the boundary between the core and a program that is compiled apart
/// from it: nothing but virtual functions, so that neither has to link the other. What they do is what the
/// concept memory::Memory says; an address or a size that cannot be is a ConfigError.
class Accesses {
 public:
  /// Of the capsule of Python that holds a pointer. Another order of the functions is another name.
  static constexpr const char* kCapsule = "pmsim.prototype.Accesses, 1";

  virtual void read(memory::Address address, std::byte* into, std::size_t bytes, bool dependent) = 0;
  virtual void write(memory::Address address, const std::byte* from, std::size_t bytes) = 0;
  virtual void stream(memory::Address address, const std::byte* from, std::size_t bytes) = 0;
  virtual void flush(memory::Address address, std::size_t bytes, memory::FlushKind kind, memory::Site site) = 0;
  virtual void sfence(memory::Site site) = 0;
  virtual void mfence(memory::Site site) = 0;
  virtual void order(memory::Site site) = 0;
  virtual void prefetch(memory::Address address) = 0;
  virtual std::uint64_t fetch_add(memory::Address address, std::uint64_t delta) = 0;
  virtual std::uint64_t compare_exchange(memory::Address address, std::uint64_t expected,
                                         std::uint64_t desired) = 0;
  virtual void compute(std::uint64_t cycles, std::uint32_t instructions) = 0;
  virtual void mispredict(memory::BranchOn on) = 0;
  virtual void block_read(memory::Address device, memory::Address destination, std::size_t bytes) = 0;
  virtual void block_write(memory::Address device, memory::Address source, std::size_t bytes) = 0;
  virtual void block_flush(memory::Site site) = 0;

 protected:
  ~Accesses() = default;
};

}  // namespace pmsim::prototype
