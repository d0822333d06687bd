// What BufferManager::resident() costs: its instructions in the compiled code, beside what the model charges for
// them, and its time on this machine. How to build and run it: docs/engines/buffer_manager.md.
//
// The code that is counted is the engine's own, instantiated for a memory whose loads and stores are plain ones and
// whose compute() is nothing (counting.hpp), from the call of `ask` to its return. The charge is the sum of what the
// same call emits on SimMemory.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "counting.hpp"
#include "pmsim/engines/buffer/buffer_manager.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace {

using namespace pmsim;
using namespace pmsim::engines;
using counting::fail;
using counting::PlainMemory;
using memory::Address;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kPageBytes = 16384;
constexpr std::uint32_t kPages = 64;

template <memory::Memory M>
[[gnu::noinline]] Address ask(buffer::BufferManager<M>& manager, M& memory, buffer::FixedPage& page,
                              std::uint32_t offset, std::uint32_t bytes) {
  return manager.resident(memory, page, offset, bytes);
}

/// Rows of YCSB: 16 keys of 4 bytes fill the line behind the header, payloads of 1000 bytes follow.
constexpr std::uint32_t key_at(std::uint32_t row) { return 64 + row * 4; }
constexpr std::uint32_t row_at(std::uint32_t row) { return 128 + row * 1000; }

/// A manager whose pages lie on PMem, the first one fixed; frames are full pages.
template <memory::Memory M>
struct Bench {
  explicit Bench(M& memory_) : memory(memory_), manager(memory, config()) {
    const std::vector<std::byte> image(kPageBytes, std::byte{7});
    for (std::uint32_t page = 0; page < kPages; ++page)
      manager.load(memory, image);
    manager.sync(memory);
    fixed = manager.fix_page(memory, 0, Access::kGrained);
  }
  static buffer::BufferConfig config() {
    EngineOptions options;
    options.engine = "three-tier";
    options.mini_pages = false;
    options.page_bytes = kPageBytes;
    options.dram_bytes = std::uint64_t{kPages} * 2 * kPageBytes;
    options.pmem_bytes = options.ssd_bytes = std::uint64_t{kPages} * 2 * kPageBytes;
    return buffer::BufferConfig::from(options);
  }
  void touch(std::uint32_t offset, std::uint32_t bytes) { ask(manager, memory, fixed, offset, bytes); }
  /// The page as if it had just been fixed, but for the caches: no line is here.
  void forget() {
    for (std::uint32_t word = 0; word < kPageBytes / 64 / 64; ++word)
      memory.template store<std::uint64_t>(fixed.frame + buffer::FullFrame::kResident + word * 8, 0);
    auto state = memory.template load<buffer::FrameState>(fixed.frame);
    state.resident = 0;
    memory.template store<buffer::FrameState>(fixed.frame, state);
  }

  M& memory;
  buffer::BufferManager<M> manager;
  buffer::FixedPage fixed;
};

const memory::Capacities kCapacities = memory::Capacities::of(16 << 20, 16 << 20, 16 << 20);

struct Shape {
  const char* what;
  std::vector<memory::Address> before;  ///< offset, bytes, offset, bytes, ...
  std::uint32_t offset;
  std::uint32_t bytes;
  bool whole = false;  ///< the handle says that the page needs no mask
};

template <typename B>
void prepare(B& bench, const Shape& shape) {
  if (shape.whole) {
    bench.fixed.frame |= buffer::kWholeTag;
    return;
  }
  bench.fixed.frame &= ~buffer::kWholeTag;
  bench.forget();
  for (std::size_t at = 0; at < shape.before.size(); at += 2)
    bench.touch(static_cast<std::uint32_t>(shape.before[at]), static_cast<std::uint32_t>(shape.before[at + 1]));
}

/// Nanoseconds per row and per key of a page that lies in the caches, every line of which is asked for by rows.
template <typename B>
void time(const char* name, B& bench) {
  double row = 1e9;
  double check = 1e9;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  };
  for (int round = 0; round < 200; ++round) {
    auto begin = Clock::now();
    for (int repeat = 0; repeat < 100; ++repeat) {
      bench.forget();
      for (std::uint32_t slot = 0; slot < 16; ++slot) {
        bench.touch(key_at(slot), 4);
        bench.touch(row_at(slot), 1000);
      }
    }
    row = std::min(row, since(begin) / 1600);
    bench.forget();
    bench.touch(64, 64);
    begin = Clock::now();
    for (std::uint32_t repeat = 0; repeat < 10000; ++repeat)
      bench.touch(key_at(repeat % 16), 4);
    check = std::min(check, since(begin) / 10000);
  }
  std::printf("%-12s %8.2f ns per row (key and 1000 bytes), %5.2f ns per key that is there\n", name, row, check);
}

}  // namespace

int main() {
  PlainMemory plain(kCapacities);
  memory::SimMemory simulated({.capacities = kCapacities});
  Bench<PlainMemory> code(plain);
  Bench<memory::SimMemory> model(simulated);
  const Shape shapes[] = {
      {"4 bytes of a page without mask", {}, 68, 4, true},
      {"4 bytes, there", {64, 64}, 68, 4},
      {"1000 bytes, there", {128, 1000}, 128, 1000},
      {"1 line", {}, 64, 4},
      {"2 lines", {}, 64, 128},
      {"3 lines", {}, 64, 192},
      {"4 lines", {}, 64, 256},
      {"5 lines", {}, 64, 320},
      {"8 lines", {}, 64, 512},
      {"15 lines, the one before them is there", {0, 128}, 64, 1024},
      {"16 lines", {}, 64, 1024},
      {"63 lines", {}, 64, 63 * 64},
      {"16 lines of two words", {}, 56 * 64, 1024},
      {"16 lines of two words, half of them there", {56 * 64, 512}, 56 * 64, 1024},
      {"3 runs of 2 lines", {4 * 64, 64, 7 * 64, 64}, 2 * 64, 512},
      {"3 runs of 4 lines", {6 * 64, 64, 11 * 64, 64}, 2 * 64, 14 * 64},
      {"a page", {}, 0, kPageBytes},
  };
  std::printf("%-44s %8s %8s\n", "instructions of resident()", "counted", "charged");
  for (const Shape& shape : shapes) {
    prepare(code, shape);
    prepare(model, shape);
    const auto touch = [&](auto& bench) { return [&] { bench.touch(shape.offset, shape.bytes); }; };
    std::printf("%-44s %8ld %8ld\n", shape.what,
                counting::counted(reinterpret_cast<const void*>(&ask<PlainMemory>), touch(code)).instructions,
                counting::charged(simulated, touch(model)).dispatched);
  }
  time("plain memory", code);
  char path[] = "/tmp/gather-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || ftruncate(file, 16 << 20) != 0)
    fail(path);
  memory::HostOptions options;
  options.capacities = kCapacities;
  options.block_path = path;
  options.best_flush = true;
  memory::HostMemory host(options);
  unlink(path);
  Bench<memory::HostMemory> native(host);
  time("HostMemory", native);
}
