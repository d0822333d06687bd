#include "pmsim/host/registry.hpp"

#include <array>
#include <string>
#include <utility>

#include "pmsim/core/error.hpp"

namespace pmsim::host {

namespace {

constexpr std::array kKinds{
    BenchmarkKind{"chase", make_chase},
    BenchmarkKind{"bandwidth", make_bandwidth},
    BenchmarkKind{"latency", make_latency},
    BenchmarkKind{"compute", make_compute},
    BenchmarkKind{"log", make_log},
    BenchmarkKind{"page-flush", make_page_flush},
    BenchmarkKind{"in-place", make_in_place},
    BenchmarkKind{"interleave", make_interleave},
    BenchmarkKind{"contention", make_contention},
    BenchmarkKind{"oltp", make_oltp},
};

}  // namespace

std::span<const BenchmarkKind> benchmark_kinds() noexcept { return kKinds; }

std::unique_ptr<Benchmark> make_benchmark(std::string_view name, Parameters parameters, const Place& place) {
  std::string known;
  for (const BenchmarkKind& kind : kKinds) {
    if (kind.name == name) {
      std::unique_ptr<Benchmark> benchmark = kind.make(parameters, place);
      parameters.require_all_read();
      return benchmark;
    }
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw ConfigError("benchmark \"" + std::string(name) + "\" is unknown; known: " + known);
}

}  // namespace pmsim::host
