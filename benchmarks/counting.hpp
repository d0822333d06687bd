// Instructions of compiled code, beside what the model charges for it: what gather.cpp and leaf.cpp have in common.
#pragma once

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>

#include "pmsim/memory/copy_lines.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::counting {

using memory::Address;
using memory::Medium;

[[noreturn]] inline void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// Both windows at their own addresses, so an access is an access and nothing else.
class PlainMemory {
 public:
  explicit PlainMemory(const memory::Capacities& capacities) : table_(capacities) {
    for (const Medium medium : {Medium::kDram, Medium::kPmem}) {
      auto* wanted = reinterpret_cast<void*>(memory::medium_base(medium));
      if (mmap(wanted, capacities.bytes[memory::index_of(medium)], PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != wanted)
        fail("mmap");
    }
  }
  Address allocate(Medium medium, std::uint64_t bytes, const memory::RegionOptions& options = {}) {
    return table_.allocate(medium, bytes, options).base;
  }
  template <memory::Value T>
  T load(Address address) {
    T value;
    std::memcpy(&value, at(address), sizeof value);
    return value;
  }
  template <memory::Value T>
  T load_dependent(Address address) {
    return load<T>(address);
  }
  template <memory::Value T>
  void store(Address address, const std::type_identity_t<T>& value) {
    std::memcpy(at(address), &value, sizeof value);
  }
  void read(Address address, std::span<std::byte> into) { std::memcpy(into.data(), at(address), into.size()); }
  void write(Address address, std::span<const std::byte> from) { std::memcpy(at(address), from.data(), from.size()); }
  void stream(Address address, std::span<const std::byte> from) { write(address, from); }
#ifndef PMSIM_WITHOUT_COPY_LINES
  void copy_lines(Address from, Address to, std::uint32_t lines) { memory::copy_lines(at(to), at(from), lines); }
#endif
  // An instruction each, and no more, as the model has them. Fences are one that nobody else uses (kFence).
  void flush(Address, std::size_t, memory::FlushKind = memory::FlushKind::kClwb, memory::Site = memory::kNoSite) {
    asm volatile("nop" ::: "memory");
  }
  void sfence(memory::Site = memory::kNoSite) { asm volatile("xchg %%rbx, %%rbx" ::: "memory"); }
  void mfence(memory::Site = memory::kNoSite) { asm volatile("xchg %%rbx, %%rbx" ::: "memory"); }
  void order(memory::Site = memory::kNoSite) {}
  void prefetch(Address address) { __builtin_prefetch(at(address), 0, 3); }
  std::uint64_t fetch_add(Address address, std::uint64_t delta) {
    const auto before = load<std::uint64_t>(address);
    store<std::uint64_t>(address, before + delta);
    return before;
  }
  std::uint64_t compare_exchange(Address address, std::uint64_t expected, std::uint64_t desired) {
    const auto before = load<std::uint64_t>(address);
    store<std::uint64_t>(address, before == expected ? desired : before);
    return before;
  }
  std::uint64_t acquire(Address, memory::LatchMode) { return 0; }
  bool release(Address, memory::LatchMode, std::uint64_t) { return true; }
  void compute(std::uint64_t, std::uint32_t) {}
  void mispredict(memory::BranchOn = memory::BranchOn::kLastLoad) {}
  void block_read(Address, Address, std::size_t) {}
  void block_write(Address, Address, std::size_t) {}
  void block_flush(memory::Site = memory::kNoSite) {}
  std::uint64_t block_gather(Address, Address, std::size_t) { return 1; }
  void block_commit(std::uint64_t, memory::Site = memory::kNoSite) {}
  void operation_begin() {}
  void operation_end() {}
  memory::Section enter(memory::Section section) { return section; }

 private:
  static std::byte* at(Address address) { return reinterpret_cast<std::byte*>(address); }

  memory::RegionTable table_;
};

/// Whether an instruction and the conditional jump behind it are one to the core (Intel 64 and IA-32 Architectures
/// Optimization Reference Manual, "Macro-Fusion"): compares, tests and simple arithmetic, not of memory with a
/// constant.
inline bool fuses_with_jump(const unsigned char* code) {
  while (*code == 0x66 || (*code & 0xf0) == 0x40)  // operand size, REX
    ++code;
  const unsigned operation = code[1] >> 3 & 7;
  const bool of_registers = code[1] >> 6 == 3;
  switch (*code) {
    case 0x80:  // add, and, sub, cmp with a constant
    case 0x81:
    case 0x83:
      return of_registers && (operation == 0 || operation == 4 || operation == 5 || operation == 7);
    case 0xf6:  // test with a constant
    case 0xf7:
      return of_registers && operation == 0;
    case 0xfe:  // inc, dec
    case 0xff:
      return of_registers && operation <= 1;
    case 0x84:  // test
    case 0x85:
    case 0xa8:
    case 0xa9:
      return true;
    default:  // add, and, sub, cmp
      return (*code & 7) < 6 &&
             ((*code & 0xf8) == 0x00 || (*code & 0xf8) == 0x20 || (*code & 0xf8) == 0x28 || (*code & 0xf8) == 0x38);
  }
}
inline bool is_conditional_jump(const unsigned char* code) {
  return (*code & 0xf0) == 0x70 || (*code == 0x0f && (code[1] & 0xf0) == 0x80);
}

constexpr unsigned char kFence[] = {0x48, 0x87, 0xdb};  // xchg %rbx, %rbx

struct Count {
  long instructions = 0;
  long dispatched = 0;  ///< compares and their jumps are one, as core.dispatch_width and core.window count them
  long before_fence = 0;  ///< of these, before the first fence; 0: there is none
};

/// From the call of the function at `entry`, which `action` calls, to behind it, in a child process that is executed
/// instruction by instruction.
template <typename Action>
Count counted(const void* entry, const Action& action) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    action();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  user_regs_struct registers{};
  const auto step = [&] {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || waitpid(child, &status, 0) != child ||
        !WIFSTOPPED(status))
      fail("ptrace");
    ptrace(PTRACE_GETREGS, child, nullptr, &registers);
  };
  do
    step();
  while (registers.rip != reinterpret_cast<unsigned long long>(entry));
  const auto stack = registers.rsp;
  Count count{1, 1, 0};  // the call
  bool fuses = false;
  do {
    // The child is a copy of this process: the same code is at the same place here.
    const auto* code = reinterpret_cast<const unsigned char*>(registers.rip);
    if (count.before_fence == 0 && std::memcmp(code, kFence, sizeof kFence) == 0)
      count.before_fence = count.dispatched;
    count.dispatched += fuses && is_conditional_jump(code) ? 0 : 1;
    ++count.instructions;
    fuses = fuses_with_jump(code);
    step();
  } while (registers.rsp <= stack);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return count;
}

/// What `action` makes the model charge: every access is an instruction, and compute() says how many more.
template <typename Action>
Count charged(memory::SimMemory& memory, const Action& action) {
  memory::Stream stream;
  memory.attach(stream);
  action();
  memory.detach();
  Count count;
  for (const memory::MicroOp& op : std::span(stream.data(), stream.size())) {
    if (count.before_fence == 0 && (op.kind == memory::OpKind::kSfence || op.kind == memory::OpKind::kMfence))
      count.before_fence = count.dispatched;
    if (op.kind != memory::OpKind::kOperationBegin && op.kind != memory::OpKind::kOperationEnd)
      count.dispatched += op.kind == memory::OpKind::kCompute ? op.bytes : 1;
  }
  return count;
}

}  // namespace pmsim::counting
