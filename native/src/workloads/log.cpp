#include <algorithm>
#include <memory>

#include "pmsim/workloads/options/log.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::workloads {

namespace {

// Threads settle to each other over some thousand entries: with 24 of them the first 400 of each are appended a
// fifth faster than the next 10,000 (docs/blocks/log.md).
constexpr std::int64_t kEntriesPerThread = 2'500;

// A few seconds. What settles does so over bytes; of entries and of groups some have to be seen all the same.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;
constexpr std::int64_t kFewestEntriesPerThread = 100;
constexpr std::int64_t kFewestGroups = 10;

using blocks::log::DriverOptions;

/// Threads that append entries to logs of their own (van Renen et al., Fig. 8). With `timed` each append is
/// timed on its own: it begins when all before it has retired. Without, they follow each other as fast as they
/// can.
class LogAppends final : public Workload {
 public:
  LogAppends(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)),
        options_(read(parameters, seed)),
        flags_(parameters.number("timed", 0, 1) != 0 ? std::uint8_t{memory::kSerialising} : std::uint8_t{0}),
        driver_(memory_, options_),
        fill_(stores_to_fill_caches(platform, options_.threads, true) *
              static_cast<std::int64_t>(memory::kLineBytes) /
              static_cast<std::int64_t>(driver_.log(0).footprint(options_.entry_size))) {}

  [[nodiscard]] std::uint32_t threads() const override { return options_.threads; }
  [[nodiscard]] machine::RunLength usual_length() const override {
    // The modules' buffers are full after some hundred lines; group commits have to be seen many times.
    const std::int64_t wanted = std::max({std::int64_t{10'000}, kEntriesPerThread * options_.threads,
                                          std::int64_t{100} * options_.group_commit});
    const std::int64_t entries = std::min(
        wanted, std::max({kMostBytes / static_cast<std::int64_t>(options_.entry_size),
                          kFewestEntriesPerThread * options_.threads, kFewestGroups * options_.group_commit}));
    return machine::RunLength::in_order(fill_, entries / 5, entries);
  }
  [[nodiscard]] std::uint64_t pmem_footprint() const override {
    return options_.medium == memory::Medium::kPmem ? driver_.persistent_bytes() : 0;
  }
  [[nodiscard]] std::map<std::string, double> facts() const override {
    return {{"log_bytes_per_entry", static_cast<double>(driver_.log(0).footprint(options_.entry_size))}};
  }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    memory_.attach(stream, thread);
    stream.push(memory::OpKind::kOperationBegin, 0, 0, flags_);
    driver_.operation(memory_, thread);
    stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(options_.entry_size));
  }

 private:
  [[nodiscard]] static DriverOptions read(Parameters& parameters, std::uint64_t seed) {
    DriverOptions options = read_log(parameters);
    options.cpu_cycles = static_cast<std::uint32_t>(parameters.number("cpu_cycles", 0, 1'000'000));
    options.seed = seed;
    return options;
  }

  memory::SimMemory memory_;
  DriverOptions options_;
  std::uint8_t flags_;  ///< of kOperationBegin
  blocks::log::LogDriver<memory::SimMemory> driver_;
  std::int64_t fill_;  ///< entries until persistent caches are full of them
};

}  // namespace

std::unique_ptr<Workload> make_log(Parameters& parameters, const machine::PlatformParams& platform,
                                   std::uint64_t seed) {
  return std::make_unique<LogAppends>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
