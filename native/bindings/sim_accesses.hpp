#pragma once

#include "pmsim/prototype/accesses.hpp"

namespace pmsim::bindings {

class PythonMemory;

/// The accesses of a PythonMemory, for programs in C++ that are compiled apart from the core.
class SimAccesses final : public prototype::Accesses {
 public:
  explicit SimAccesses(PythonMemory& memory) noexcept : memory_(memory) {}

  void read(memory::Address address, std::byte* into, std::size_t bytes, bool dependent) override;
  void write(memory::Address address, const std::byte* from, std::size_t bytes) override;
  void stream(memory::Address address, const std::byte* from, std::size_t bytes) override;
  void flush(memory::Address address, std::size_t bytes, memory::FlushKind kind, memory::Site site) override;
  void sfence(memory::Site site) override;
  void mfence(memory::Site site) override;
  void order(memory::Site site) override;
  void prefetch(memory::Address address) override;
  std::uint64_t fetch_add(memory::Address address, std::uint64_t delta) override;
  std::uint64_t compare_exchange(memory::Address address, std::uint64_t expected,
                                 std::uint64_t desired) override;
  void compute(std::uint64_t cycles, std::uint32_t instructions) override;
  void mispredict(memory::BranchOn on) override;
  void block_read(memory::Address device, memory::Address destination, std::size_t bytes) override;
  void block_write(memory::Address device, memory::Address source, std::size_t bytes) override;
  void block_flush(memory::Site site) override;

 private:
  PythonMemory& memory_;
};

}  // namespace pmsim::bindings
