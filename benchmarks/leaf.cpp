// What lookups and inserts of FP-tree leaves cost, plain and as coroutines: their instructions in the compiled code,
// beside what the model charges for them. How to build and run it: docs/blocks/interleave.md.
//
// The code that is counted is the block's own, instantiated for a memory whose accesses are plain ones and whose
// compute() is nothing (counting.hpp).

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "counting.hpp"
#include "pmsim/blocks/index/driver.hpp"

namespace {

using namespace pmsim;
using namespace pmsim::blocks::index;
using counting::PlainMemory;

constexpr std::uint32_t kLeaves = 32;  ///< as many as operations; leaf i has i pairs before an insert, or all

struct Shape {
  const char* what;
  bool inserts, coroutines, reads, writes;
};

/// One operation on each leaf.
template <memory::Memory M>
struct Bench {
  Bench(M& memory_, const Shape& shape_)
      : memory(memory_), shape(shape_), block(Interleave{.reads = shape_.reads, .writes = shape_.writes}) {
    const Address base =
        memory.allocate(memory::Medium::kPmem, kLeaves * FpTreeLeaf::kBytes, {.name = "leaves"});
    for (std::uint32_t leaf = 0; leaf < kLeaves; ++leaf) {
      const Address at = base + leaf * FpTreeLeaf::kBytes;
      for (std::uint32_t slot = 0; slot < (shape.inserts ? leaf : FpTreeLeaf::kSlots); ++slot)
        static_cast<void>(FpTreeLeaf::insert(memory, at, LeafContents::key(leaf, slot), slot));
      const std::uint64_t key = LeafContents::key(leaf, shape.inserts ? FpTreeLeaf::kSlots : leaf);
      lookups.push_back({at, key});
      inserts.push_back({at, key, leaf});
    }
  }

  M& memory;
  Shape shape;
  InterleavedLeaf block;
  std::vector<InterleavedLeaf::Lookup> lookups;
  std::vector<InterleavedLeaf::Insert> inserts;
  std::array<std::optional<std::uint64_t>, kLeaves> values{};
  std::array<bool, kLeaves> durable{};
};

template <memory::Memory M>
[[gnu::noipa]] void operate(Bench<M>& bench) {
  M& memory = bench.memory;
  if (bench.shape.coroutines) {
    return bench.shape.inserts ? bench.block.insert(memory, bench.inserts, bench.durable)
                               : bench.block.lookup(memory, bench.lookups, bench.values);
  }
  for (std::uint32_t leaf = 0; leaf < kLeaves; ++leaf) {
    if (bench.shape.inserts) {
      const auto& [at, key, value] = bench.inserts[leaf];
      bench.durable[leaf] = FpTreeLeaf::insert(memory, at, key, value);
    } else {
      bench.values[leaf] = FpTreeLeaf::lookup(memory, bench.lookups[leaf].leaf, bench.lookups[leaf].key);
    }
  }
}

/// The first group allocates the frames of coroutines: here one that finds its leaves full and changes nothing.
template <memory::Memory M>
void warm(Bench<M>& bench) {
  const Bench full(bench.memory, {"full leaves", false, false, false, false});
  bench.block.lookup(bench.memory, full.lookups, bench.values);
  bench.block.insert(bench.memory, full.inserts, bench.durable);
}

}  // namespace

int main() {
  const memory::Capacities capacities = memory::Capacities::of(1 << 20, 1 << 20, 0);
  PlainMemory plain(capacities);
  memory::SimMemory simulated({.capacities = capacities});
  const Shape shapes[] = {
      {"lookup, plain", false, false, false, false},
      {"lookup, coroutine that never waits", false, true, false, false},
      {"lookup, reads interleaved", false, true, true, false},
      {"insert, plain", true, false, false, false},
      {"insert, coroutine that never waits", true, true, false, false},
      {"insert, reads interleaved", true, true, true, false},
      {"insert, writes interleaved", true, true, false, true},
      {"insert, both interleaved", true, true, true, true},
  };
  std::printf("%-36s %12s %10s %8s %24s\n", "of an operation", "instructions", "dispatched", "charged",
              "and before the 1st fence");
  int failures = 0;
  for (const Shape& shape : shapes) {
    Bench code(plain, shape);
    Bench model(simulated, shape);
    warm(code);
    const counting::Count count =
        counting::counted(reinterpret_cast<const void*>(&operate<PlainMemory>), [&] { operate(code); });
    const counting::Count charge = counting::charged(simulated, [&] { operate(model); });
    const auto each = [](long instructions) { return static_cast<double>(instructions) / kLeaves; };
    std::printf("%-36s %12.1f %10.1f %8.1f", shape.what, each(count.instructions), each(count.dispatched),
                each(charge.dispatched));
    const bool by_group = shape.coroutines && shape.writes;
    if (by_group)
      std::printf(" %14.1f %9.1f", each(count.before_fence), each(charge.before_fence));
    std::printf("\n");
#if defined(__GNUC__) && !defined(__clang__)
    // Other compilers may make quite another code of coroutines.
    const auto off = [](long counted, long charged) { return 4 * std::abs(counted - charged) > counted; };
    failures += shape.coroutines && off(count.dispatched, charge.dispatched) ? 1 : 0;
    failures += by_group && off(count.before_fence, charge.before_fence) ? 1 : 0;
#endif
  }
  if (failures > 0)
    std::printf("%d charges are more than a quarter off\n", failures);
  return failures > 0 ? 1 : 0;
}
