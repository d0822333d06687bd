#include "pmsim/core/host_room.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/memory/mapped_bytes.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr const char* kVariable = "PMSIM_HOST_MEMORY";

/// A file system with what the kernel says about memory: 64 GiB, of which 40 are available.
class Host {
 public:
  Host() {
    std::string path = (fs::temp_directory_path() / "pmsim-host-XXXXXX").string();
    root_ = ::mkdtemp(path.data());
    write("proc/meminfo",
          "MemTotal:       67108864 kB\nMemFree:         1000 kB\nMemAvailable:   41943040 kB\n");
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((fs::path(root_) / path).parent_path());
    std::ofstream(fs::path(root_) / path) << text;
  }
  [[nodiscard]] HostRoom room() const { return host_room(root_).value(); }
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::string root_;
};

/// Sets the variable of the environment for a test.
class Limit {
 public:
  explicit Limit(const std::string& text) { ::setenv(kVariable, text.c_str(), 1); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() { ::unsetenv(kVariable); }

  /// So much more than this process has now, and the reserve.
  [[nodiscard]] static std::string beyond_now(std::uint64_t bytes) {
    std::ifstream file("/proc/self/statm");
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    std::uint64_t shared = 0;
    file >> size >> resident >> shared;
    const std::uint64_t own = (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return std::to_string(own + 128 * kMiB + bytes);
  }
};

/// Writes pages of a region until the host has no more, or `bytes` are written; returns how many were.
std::uint64_t written_before_refused(memory::SimMemory& memory, memory::Address base, std::uint64_t bytes) {
  const std::vector<std::byte> page(4096, std::byte{1});
  for (std::uint64_t done = 0; done < bytes; done += page.size()) {
    try {
      memory.write(base + done, page);
    } catch (const HostMemoryError&) {
      return done;
    }
  }
  return bytes;
}

TEST(HostRoom, AMachineWithoutGroupsHasWhatTheKernelSays) {
  const HostRoom room = Host().room();
  EXPECT_EQ(room.total, 64 * kGiB);
  EXPECT_EQ(room.available, 40 * kGiB);
}

TEST(HostRoom, AKernelThatSaysNothingLimitsNothing) {
  EXPECT_FALSE(host_room("/no such folder"));
  EXPECT_FALSE(host_room(Host().root() + "/proc").has_value());
}

TEST(HostRoom, ALimitOfAnEnclosingGroupCountsAndCachedFilesAreNotTaken) {
  const Host host;
  host.write("proc/self/cgroup", "0::/slice/job\n");
  host.write("sys/fs/cgroup/slice/job/memory.max", "max\n");
  host.write("sys/fs/cgroup/slice/job/memory.current", "1073741824\n");
  host.write("sys/fs/cgroup/slice/memory.max", std::to_string(8 * kGiB));
  host.write("sys/fs/cgroup/slice/memory.current", std::to_string(7 * kGiB));
  host.write("sys/fs/cgroup/slice/memory.stat", "anon 5\ninactive_file " + std::to_string(kGiB) +
                                                    "\nactive_file " + std::to_string(2 * kGiB) + "\n");
  EXPECT_EQ(host.room().total, 8 * kGiB);
  EXPECT_EQ(host.room().available, 4 * kGiB);
}

TEST(HostRoom, AGroupOfTheFirstVersionLimitsToo) {
  const Host host;
  host.write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/abc\n0::/\n");
  // In a container the group's own folder is the root of the mount.
  host.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(2 * kGiB));
  host.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(kGiB));
  host.write("sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_inactive_file 1048576\ntotal_active_file 0\n");
  EXPECT_EQ(host.room().total, 2 * kGiB);
  EXPECT_EQ(host.room().available, kGiB + kMiB);
}

TEST(HostRoom, AGroupWithoutALimitLeavesTheMachine) {
  const Host host;
  host.write("proc/self/cgroup", "4:memory:/\n");
  host.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  host.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(63 * kGiB));
  EXPECT_EQ(host.room().available, 40 * kGiB);
}

TEST(HostRoom, TheReserveStaysFree) {
  const HostRoom large{128 * kGiB, 3 * kGiB};
  EXPECT_EQ(large.reserve(), 2 * kGiB);
  EXPECT_TRUE(large.holds(kGiB));
  EXPECT_FALSE(large.holds(kGiB + 1));
  const HostRoom small{kGiB, 128 * kMiB};
  EXPECT_FALSE(small.holds(0));
}

TEST(HostRoom, TheEnvironmentMayLimitAProcess) {
  {
    const Limit limit("4 GiB");
    const HostRoom room = Host().room();
    EXPECT_EQ(room.total, 4 * kGiB);
    EXPECT_LT(room.available, 4 * kGiB);  // this process has taken some
  }
  const Limit more("100 GiB");  // than there is
  EXPECT_EQ(Host().room().available, 40 * kGiB);
}

TEST(HostRoom, SizesHaveTheUnitsOfScenarios) {
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"4 GB", 4'000'000'000},
           {"4000 MB", 4'000'000'000},
           {"4000000 kB", 4'000'000'000},
           {"4 GiB", 4 * kGiB},
           {"4096MiB", 4 * kGiB},
           {"4000000000", 4'000'000'000},
       }) {
    const Limit limit(text);
    EXPECT_EQ(Host().room().total, bytes) << text;
  }
}

TEST(HostRoom, WhatIsNoSizeIsRefused) {
  for (const char* text : {"much", "4 KB", "-1", "0", "4 GiB more", "1.5 GiB", "99999999999 TiB", "4 gib"}) {
    const Limit limit(text);
    EXPECT_THROW(static_cast<void>(Host().room()), ConfigError) << text;
  }
}

TEST(HostRoom, BytesOfARegionAreRefusedBeforeTheHostIsFull) {
  memory::SimMemory memory({.capacities = memory::Capacities::of(kGiB, 0, 0)});
  const memory::Address base = memory.allocate(memory::Medium::kDram, kGiB);
  const Limit limit(Limit::beyond_now(64 * kMiB));
  const std::uint64_t written = written_before_refused(memory, base, 512 * kMiB);
  EXPECT_GE(written, 64 * kMiB - HostMemoryWatch::kStride);
  EXPECT_LE(written, 64 * kMiB + HostMemoryWatch::kStride);
}

TEST(HostRoom, LinesOfASparseRegionAreRefusedBeforeTheHostIsFull) {
  memory::SimMemory memory({.capacities = memory::Capacities::of(kGiB, 0, 0)});
  const memory::Address base =
      memory.allocate(memory::Medium::kDram, kGiB, {.backing = memory::Backing::kSparse});
  const Limit limit(Limit::beyond_now(64 * kMiB));
  const std::uint64_t written = written_before_refused(memory, base, 512 * kMiB);
  EXPECT_GE(written, 16 * kMiB);  // its table grows in steps, which have to fit as a whole
  EXPECT_LE(written, 64 * kMiB + HostMemoryWatch::kStride);
}

TEST(HostRoom, WithoutALimitTheSameRegionsAreWritten) {
  memory::SimMemory memory({.capacities = memory::Capacities::of(kGiB, 0, 0)});
  const memory::Address base = memory.allocate(memory::Medium::kDram, kGiB);
  EXPECT_EQ(written_before_refused(memory, base, 128 * kMiB), 128 * kMiB);
}

TEST(HostRoom, AFullFileSystemRefusesTheFileOfASimulatedSsd) {
  EXPECT_NO_THROW(memory::require_temporary_space(0));
  EXPECT_THROW(memory::require_temporary_space(std::numeric_limits<std::uint64_t>::max()), HostMemoryError);
}

}  // namespace
}  // namespace pmsim
