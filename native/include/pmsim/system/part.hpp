#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/core/poll.hpp"
#include "pmsim/machine/params.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/system/service.hpp"
#include "pmsim/workloads/parameters.hpp"

namespace pmsim::system {

/// One of the things that a server does, on the memory that it shares with the server's other parts: a log, a
/// page store, a table, an engine. Memory comes first in every call; a part keeps no reference to it.
class Part {
 public:
  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  virtual ~Part() = default;

  /// Names of its request kinds.
  [[nodiscard]] virtual std::vector<std::string_view> kinds() const = 0;
  /// Executes a request of its kind number `request.kind`; begin and end are the caller's. See
  /// Service::execute.
  virtual std::uint64_t execute(memory::SimMemory& memory, std::uint32_t worker, const Request& request) = 0;
  /// Power is back: rebuilds itself from what `memory` holds. The same part object, whose addresses still hold;
  /// everything else that it remembers is volatile and must not be used.
  virtual void recover(memory::SimMemory& memory) = 0;
  /// Whether it has nothing to recover from when what it holds on this medium is gone. Others begin empty.
  [[nodiscard]] virtual bool needs(memory::Medium medium) const {
    static_cast<void>(medium);
    return false;
  }

  [[nodiscard]] virtual std::uint64_t pmem_bytes() const { return 0; }
  [[nodiscard]] virtual std::map<std::string, double> facts() const { return {}; }
  /// See Service::shared().
  [[nodiscard]] virtual bool shared() const { return false; }
  /// See Service::shares_lines().
  [[nodiscard]] virtual bool shares_lines() const { return false; }
  /// See Service::present(); nothing where the part has no ledger.
  [[nodiscard]] virtual std::optional<std::vector<std::uint64_t>> present(memory::SimMemory& memory) {
    static_cast<void>(memory);
    return std::nullopt;
  }
};

/// What a part is made for.
struct PartContext {
  memory::SimMemory& memory;
  const machine::PlatformParams& platform;
  std::uint32_t workers;
  std::uint64_t seed;
  const Watch& watch;  ///< told while data are loaded
  bool crash;          ///< power failures are possible
};

/// One kind of part. To add one: write its file in native/src/system/parts, declare its factory below, add a
/// row to make_service.cpp.
struct PartKind {
  std::string_view name;
  std::unique_ptr<Part> (*make)(workloads::Parameters& parameters, const PartContext& context);
};

[[nodiscard]] std::span<const PartKind> part_kinds() noexcept;

/// What one part of a server is, as Python says it.
struct PartSpec {
  std::string part;  ///< a name of part_kinds()
  std::map<std::string, workloads::Parameters::Value> parameters;
};

/// A service of these parts on one memory. The kinds of its requests are "PART.KIND" with the part's name, or
/// "PART2.KIND" for the second part of a name, and so on. `crash`: power failures are possible; costs time and
/// a second copy of the memory. `watch`: see PartContext. Throws ConfigError for an unknown part or parameter.
[[nodiscard]] std::unique_ptr<Service> make_service(const std::vector<PartSpec>& parts,
                                                    const machine::PlatformParams& platform,
                                                    std::uint32_t workers, std::uint64_t seed, bool crash,
                                                    const Watch& watch = {});

/// A service whose only request, "operation", is the next operation of a native workload's thread: the closed
/// loops of the core, driven from outside. Throws ConfigError where the workload does not emit its operations
/// one by one, each timed on its own. `watch`: see Workload::prepare.
[[nodiscard]] std::unique_ptr<Service> make_workload_service(
    std::string_view workload, const std::map<std::string, workloads::Parameters::Value>& parameters,
    const machine::PlatformParams& platform, std::uint64_t seed, const Watch& watch = {});

std::unique_ptr<Part> make_compute(workloads::Parameters& parameters, const PartContext& context);
std::unique_ptr<Part> make_log(workloads::Parameters& parameters, const PartContext& context);
std::unique_ptr<Part> make_block_log(workloads::Parameters& parameters, const PartContext& context);
std::unique_ptr<Part> make_pages(workloads::Parameters& parameters, const PartContext& context);
std::unique_ptr<Part> make_engine(workloads::Parameters& parameters, const PartContext& context);
std::unique_ptr<Part> make_recorded(workloads::Parameters& parameters, const PartContext& context);
std::unique_ptr<Part> make_transactions_part(workloads::Parameters& parameters, const PartContext& context);
std::unique_ptr<Part> make_table(workloads::Parameters& parameters, const PartContext& context);

}  // namespace pmsim::system
