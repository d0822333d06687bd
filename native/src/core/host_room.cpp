#include "pmsim/core/host_room.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

#include "pmsim/core/error.hpp"

namespace pmsim {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = 1024 * kMiB;
constexpr std::uint64_t kLeastReserve = 128 * kMiB;
constexpr std::uint64_t kReservePart =
    64;  // of the total: as many processes as it has cores look at their own times
constexpr const char* kVariable = "PMSIM_HOST_MEMORY";

/// The number after a word at the start of a line, in the file's own unit.
std::optional<std::uint64_t> number_after(const std::string& path, std::string_view word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(word) && line.size() > word.size()) {
      std::istringstream rest(line.substr(word.size()));
      if (std::uint64_t value = 0; rest >> value)
        return value;
    }
  }
  return std::nullopt;
}

/// The number that a file consists of; nothing where there is no file, or the word "max".
std::optional<std::uint64_t> number_in(const std::string& path) { return number_after(path, ""); }

struct Names {
  const char* controllers;  ///< in /proc/self/cgroup
  const char* mount;
  const char* limit;
  const char* used;
  std::array<const char*, 2> cached;  ///< in memory.stat: given back before anything is killed
};
constexpr std::array kVersions{
    Names{"", "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file ", "active_file "}},
    Names{"memory",
          "/sys/fs/cgroup/memory",
          "memory.limit_in_bytes",
          "memory.usage_in_bytes",
          {"total_inactive_file ", "total_active_file "}},
};

/// Lowers `room` to what a control group leaves, where it has a limit.
void limit_by(HostRoom& room, const std::string& folder, const Names& names) {
  const auto limit = number_in(folder + "/" + names.limit);
  const auto used = number_in(folder + "/" + names.used);
  if (!limit || !used || *limit >= room.total)
    return;
  std::uint64_t cached = 0;
  for (const char* word : names.cached)
    cached += number_after(folder + "/memory.stat", word).value_or(0);
  const std::uint64_t taken = *used - std::min(*used, cached);
  room.total = *limit;
  room.available = std::min(room.available, *limit - std::min(*limit, taken));
}

/// A group's limit holds for the groups in it: every level counts.
void limit_by_groups(HostRoom& room, const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    for (const Names& names : kVersions) {
      if (controllers != names.controllers)
        continue;
      std::string path = line.substr(second + 1);
      while (true) {
        limit_by(room, root + names.mount + path, names);
        const std::size_t end = path.rfind('/');
        if (end == std::string::npos)
          break;
        path.resize(end);
      }
    }
  }
}

/// Taken by this process, without files and what it shares.
std::uint64_t own_memory() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  std::uint64_t shared = 0;
  file >> size >> resident >> shared;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return (resident - std::min(resident, shared)) * page;
}

/// What the user lets each process take; nothing: what there is.
std::optional<std::uint64_t> wanted_limit() {
  const char* const text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0')
    return std::nullopt;
  std::istringstream words(text);
  std::uint64_t value = 0;
  std::string unit;
  words >> value;
  const bool whole = !words.fail() && *text != '-' && *text != '+';
  words >> unit;
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  // Those of the sizes in scenarios (pmsim/units.py).
  constexpr std::uint64_t k1000 = 1000;
  constexpr std::array kUnits{Unit{"", 1},
                              Unit{"B", 1},
                              Unit{"KiB", kMiB / 1024},
                              Unit{"MiB", kMiB},
                              Unit{"GiB", kGiB},
                              Unit{"TiB", 1024 * kGiB},
                              Unit{"kB", k1000},
                              Unit{"MB", k1000 * k1000},
                              Unit{"GB", k1000 * k1000 * k1000},
                              Unit{"TB", k1000 * k1000 * k1000 * k1000}};
  const auto known = std::ranges::find(kUnits, unit, &Unit::name);
  std::string more;
  if (!whole || value == 0 || known == kUnits.end() || words >> more ||
      value > std::numeric_limits<std::uint64_t>::max() / known->bytes) {
    throw ConfigError(std::string(kVariable) + ": '" + text +
                      "' is no size; write, for example, \"8 GiB\", or unset it");
  }
  return value * known->bytes;
}

std::string size_text(std::uint64_t bytes) {
  const bool large = bytes >= 10 * kGiB;
  std::ostringstream text;
  text << std::fixed << std::setprecision(large ? 1 : 0)
       << static_cast<double>(bytes) / static_cast<double>(large ? kGiB : kMiB) << (large ? " GiB" : " MiB");
  return text.str();
}

}  // namespace

thread_local std::uint64_t HostMemoryWatch::since_ = 0;

std::uint64_t HostRoom::reserve() const noexcept { return std::max(kLeastReserve, total / kReservePart); }

std::optional<HostRoom> host_room(const std::string& root) {
  constexpr std::uint64_t kKiB = 1024;
  const std::string meminfo = root + "/proc/meminfo";
  const auto total = number_after(meminfo, "MemTotal:");
  const auto available = number_after(meminfo, "MemAvailable:");
  const auto limit = wanted_limit();
  if (!total || !available)
    return std::nullopt;
  HostRoom room{*total * kKiB, *available * kKiB};
  limit_by_groups(room, root);
  if (limit && *limit < room.total) {
    // Not `limit` of a machine that others use, too, but of this process.
    const std::uint64_t own = own_memory();
    room.total = *limit;
    room.available = std::min(room.available, *limit - std::min(*limit, own));
  }
  return room;
}

void require_host_memory(std::uint64_t more) {
  const std::optional<HostRoom> room = host_room();
  if (!room || room->holds(more))
    return;
  const std::string wants =
      more == 0 ? "what is simulated needs more memory" : "needs " + size_text(more) + " more memory";
  throw HostMemoryError(
      wants + " than this host can give: of its " + size_text(room->total) + ", " + size_text(room->available) +
      " are left, of which " + size_text(room->reserve()) + " stay free, and this process has taken " +
      size_text(own_memory()) +
      "; choose less data (a smaller scale, fewer pages or rows), fewer processes (--jobs), or a "
      "host with more memory");
}

void HostMemoryWatch::look() {
  since_ = 0;
  require_host_memory();
}

}  // namespace pmsim
