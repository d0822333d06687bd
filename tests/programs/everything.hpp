#pragma once

#include <array>
#include <cstring>
#include <tuple>

#include <pmsim/prototype.hpp>

namespace all {

using namespace pmsim::prototype;

template <Memory M>
class Everything {
 public:
  void create(M& memory) {
    pmem_ = memory.allocate(Medium::kPmem, 4096, "pmem");
    dram_ = memory.allocate(Medium::kDram, 4096, "dram");
    device_ = memory.allocate(Medium::kBlock, 8192, "device");
  }
  Acknowledged run(M& memory, const std::tuple<std::uint64_t, Bytes>& operation) {
    const auto& [number, data] = operation;
    std::array<std::byte, 128> copied;
    memory.template store<std::uint64_t>(pmem_, number);
    memory.template store<std::uint8_t>(pmem_ + 8, std::uint8_t(number));
    memory.write(pmem_ + 64, data);
    memory.flush(pmem_, 72);
    memory.flush(pmem_ + 64, 8, FlushKind::kClflushOpt);
    memory.flush(pmem_ + 128, 8, FlushKind::kClflush);
    memory.sfence();
    memory.stream(pmem_ + 1024, std::span(data).first(16));
    memory.mfence();
    memory.order();
    memory.read(pmem_ + 1000, copied);
    memory.write(dram_, copied);
    if (memory.template load<std::uint64_t>(pmem_) == number)
      memory.mispredict();
    if (memory.template load_dependent<std::uint32_t>(pmem_) == number)
      memory.mispredict(pmsim::memory::BranchOn::kAtHand);
    memory.prefetch(dram_ + 512);
    memory.fetch_add(pmem_ + 512, 3);
    memory.compare_exchange(pmem_ + 520, 0, number);
    for (const LatchMode mode : {LatchMode::kShared, LatchMode::kExclusive})
      memory.release(dram_ + 1024, mode, memory.acquire(dram_ + 1024, mode));
    memory.compute(number, 7);
    memory.copy_lines(pmem_, dram_ + 2048, 5);
    memory.block_write(device_, pmem_, 512);
    memory.block_flush();
    memory.block_read(device_ + 512, dram_, 1024);
    memory.block_commit(memory.block_gather(device_, pmem_, 512));
    memory.enter(pmsim::memory::Section::kLog);
    return number % 2 == 0 ? Acknowledged::kNow : Acknowledged::kLater;
  }
  std::uint64_t recover(M& memory) { return memory.template load<std::uint64_t>(memory.region("pmem")); }

 private:
  Address pmem_ = 0, dram_ = 0, device_ = 0;
};

}  // namespace all
