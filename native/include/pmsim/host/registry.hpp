#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "pmsim/host/benchmark.hpp"
#include "pmsim/workloads/parameters.hpp"

namespace pmsim::host {

using workloads::Parameters;

/// One kind of benchmark. To add one: write its file, declare its factory, add a row to registry.cpp.
struct BenchmarkKind {
  std::string_view name;
  std::unique_ptr<Benchmark> (*make)(Parameters& parameters, const Place& place);
};

[[nodiscard]] std::span<const BenchmarkKind> benchmark_kinds() noexcept;

/// Throws ConfigError for an unknown name or parameter, a value that cannot be, memory that is refused, or a
/// CPU that lacks the instructions.
[[nodiscard]] std::unique_ptr<Benchmark> make_benchmark(std::string_view name, Parameters parameters,
                                                        const Place& place);

std::unique_ptr<Benchmark> make_chase(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_bandwidth(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_latency(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_compute(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_log(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_page_flush(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_in_place(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_contention(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_interleave(Parameters& parameters, const Place& place);
std::unique_ptr<Benchmark> make_oltp(Parameters& parameters, const Place& place);

}  // namespace pmsim::host
