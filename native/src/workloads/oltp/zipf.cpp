#include "pmsim/workloads/oltp/zipf.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace pmsim::workloads::oltp {

namespace {

double computed_zeta(std::uint64_t n, double z) {
  constexpr std::uint64_t kExact = std::uint64_t{1} << 20;
  double sum = 0;
  for (std::uint64_t i = n < kExact ? n : kExact; i > 0; --i)  // small terms first
    sum += std::pow(static_cast<double>(i), -z);
  if (n <= kExact)
    return sum;
  const double from = static_cast<double>(kExact);
  const double to = static_cast<double>(n);
  const double integral =
      z == 1 ? std::log(to / from) : (std::pow(to, 1 - z) - std::pow(from, 1 - z)) / (1 - z);
  return sum + integral + (std::pow(to, -z) - std::pow(from, -z)) / 2;
}

}  // namespace

double zeta(std::uint64_t n, double z) {
  static std::mutex mutex;
  static std::map<std::pair<std::uint64_t, double>, double> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace({n, z});
  if (is_new)
    entry->second = computed_zeta(n, z);
  return entry->second;
}

}  // namespace pmsim::workloads::oltp
