#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/host/region.hpp"
#include "pmsim/host/registry.hpp"
#include "pmsim/workloads/access.hpp"

namespace pmsim::host {

namespace {

using memory::kLineBytes;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

/// Dependent loads along a random cycle over the region, one node every `spacing` bytes: idle latency of
/// whatever holds a working set of that many nodes. With `cold` all nodes are flushed out of the caches before
/// each repetition and visited at most once in it: the latency of memory, however large and however shared the
/// last-level cache is. A cold chase wants a spacing beyond 128 bytes, because processors fetch lines in pairs.
class Chase final : public Benchmark {
 public:
  Chase(Parameters& parameters, const Place& place) {
    const bool pmem = parameters.choice("memory", {"dram", "pmem"}) == "pmem";
    const auto region = static_cast<std::uint64_t>(parameters.number("region_size", 2 * kLineBytes, kMaxBytes));
    const auto spacing = static_cast<std::uint64_t>(parameters.number("spacing", kLineBytes, 1 << 21));
    cold_ = parameters.number("cold", 0, 1) != 0;
    if (spacing % kLineBytes != 0)
      parameters.refuse("spacing", "must be a multiple of 64 bytes");
    nodes_ = region / spacing;
    if (nodes_ < 2)
      parameters.refuse("region_size", "holds fewer than two nodes; enlarge it or lower the spacing");
    if (nodes_ > std::uint64_t{1} << 32)
      parameters.refuse("region_size", "holds more than 2^32 nodes; raise the spacing");
    mapping_ = raw_mapping(pmem ? place : Place{{}, place.large_pages}, region);
    // Sattolo's shuffle: a single cycle.
    std::vector<std::uint32_t> order(nodes_);
    std::iota(order.begin(), order.end(), 0U);
    Random random(region);
    for (std::uint64_t last = nodes_ - 1; last > 0; --last)
      std::swap(order[last], order[random.below(last)]);
    for (std::uint64_t node = 0; node < nodes_; ++node) {
      const std::byte* next = mapping_.data() + order[node] * spacing;
      std::memcpy(mapping_.data() + node * spacing, &next, sizeof next);
    }
    at_ = mapping_.data();
  }

  [[nodiscard]] std::uint64_t limit() const override { return cold_ ? nodes_ : 0; }
  [[nodiscard]] bool is_dax() const override { return mapping_.is_dax(); }

  void reset() override {
    if (cold_)
      evict(mapping_.data(), mapping_.size());
  }

  void run(std::uint32_t /*thread*/, std::uint64_t operations) override {
    const std::byte* at = at_;
    for (std::uint64_t done = 0; done < operations; ++done)
      std::memcpy(&at, at, sizeof at);
    workloads::consume(at);
    at_ = at;
  }

 private:
  memory::HostMapping mapping_;
  std::uint64_t nodes_ = 0;
  bool cold_ = false;
  const std::byte* at_ = nullptr;
};

}  // namespace

std::unique_ptr<Benchmark> make_chase(Parameters& parameters, const Place& place) {
  return std::make_unique<Chase>(parameters, place);
}

}  // namespace pmsim::host
