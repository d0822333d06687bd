#pragma once

#include <pybind11/numpy.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "pmsim/machine/histogram.hpp"

namespace pmsim::bindings {

/// Operations by part of a run and bucket of their latency, the largest latency of each bucket, and the sum of
/// the latencies of each part.
using LatencyTable =
    std::tuple<pybind11::array_t<std::int64_t>, pybind11::array_t<Picoseconds>, pybind11::array_t<double>>;

/// No bucket behind the last one that is used; none holds more than `maximum`, the largest latency of the run.
[[nodiscard]] inline LatencyTable latency_table(std::span<const machine::Histogram> parts,
                                                Picoseconds maximum) {
  std::size_t used = 0;
  for (const machine::Histogram& part : parts) {
    const auto buckets = part.buckets();
    for (std::size_t index = used; index < buckets.size(); ++index)
      used = buckets[index] > 0 ? index + 1 : used;
  }
  pybind11::array_t<std::int64_t> counts({parts.size(), used});
  for (std::size_t part = 0; part < parts.size() && used > 0; ++part)
    std::ranges::copy(parts[part].buckets().first(used), counts.mutable_data(part, 0));
  pybind11::array_t<Picoseconds> edges(static_cast<pybind11::ssize_t>(used));
  for (std::size_t index = 0; index < used; ++index)
    *edges.mutable_data(index) = std::min(maximum, machine::Histogram::upper_edge(index));
  pybind11::array_t<double> sums(static_cast<pybind11::ssize_t>(parts.size()));
  for (std::size_t part = 0; part < parts.size(); ++part)
    *sums.mutable_data(part) = parts[part].sum();
  return {counts, edges, sums};
}

}  // namespace pmsim::bindings
