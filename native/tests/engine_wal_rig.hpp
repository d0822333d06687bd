#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

#include "pmsim/core/error.hpp"
#include "pmsim/engines/wal/wal.hpp"
#include "pmsim/memory/sim_memory.hpp"

/// What the tests of one write-ahead log and of several have in common.
namespace pmsim::engines::wal::rig {

/// Device, algorithm and layout of a log.
using Device = std::tuple<const char*, const char*, const char*>;

/// Small logs of 256 KiB.
inline EngineOptions options_of(const Device& device, std::uint32_t logs = 1) {
  EngineOptions options;
  std::tie(options.log_device, options.log_algorithm, options.log_layout) = device;
  options.page_bytes = 4096;
  options.log_buffer_bytes = 24 << 10;
  options.log_bytes = logs * (256 << 10);
  options.threads = logs;
  options.logs = logs > 1 ? "per-thread" : "shared";
  return options;
}

inline std::string name_of(const testing::TestParamInfo<Device>& device) {
  std::string name = std::string(std::get<0>(device.param)) + "_" + std::get<1>(device.param) + "_" +
                     std::get<2>(device.param);
  std::ranges::replace(name, '-', '_');
  return name;
}

/// What is said of options that cannot be; "accepted" where they can.
inline std::string refusal(const EngineOptions& options) {
  memory::SimMemory memory;
  try {
    Wal wal(memory, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace pmsim::engines::wal::rig
