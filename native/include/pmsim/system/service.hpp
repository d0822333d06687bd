#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/memory/stream.hpp"

namespace pmsim::system {

/// What a client asks of a server: one of the service's request kinds, and two numbers that mean what the kind
/// says (a key, a page, a first entry and how many). `id` is the client's name for it.
struct Request {
  std::uint64_t id = 0;
  std::uint32_t kind = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 1;
};

/// The program behind a server: a block or an engine on simulated memory.
///
/// Function first: execute() runs the whole request at once on the simulated bytes and leaves its
/// micro-operations in `stream`, among them one operation_begin that serialises (SimMemory waits for what is
/// before it) and one operation_end; their time is the machine's affair. Requests are executed in the order in
/// which workers begin them.
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  /// Names of the request kinds; a kind's number is its place.
  [[nodiscard]] virtual std::vector<std::string_view> kinds() const = 0;
  /// Executes a request by `worker`. Returns what the kind promises (entries found, pages written); 0 where it
  /// promises nothing. A persistent kind's effects are DURABLE when its micro-operations have ended.
  virtual std::uint64_t execute(std::uint32_t worker, const Request& request, memory::Stream& stream) = 0;
  /// Bytes of PMem that its regions occupy.
  [[nodiscard]] virtual std::uint64_t pmem_footprint() const = 0;
  /// Numbers about its data structures, by name.
  [[nodiscard]] virtual std::map<std::string, double> facts() const { return {}; }

  /// Whether workers share persistent state. Then, where the power can fail, requests are acknowledged in the
  /// order of their execution, as a common log does it: what is durable of a later one may rest on an earlier
  /// one. Where each worker's persistent lines are its own, each has its own order.
  [[nodiscard]] virtual bool shared() const { return false; }

  /// See memory::Source::shares_lines().
  [[nodiscard]] virtual bool shares_lines() const { return false; }

  /// The memory, for services that survive power failures: tracked and logged (SimMemory::keep_log). Null: the
  /// service cannot be crashed.
  [[nodiscard]] virtual memory::SimMemory* tracked_memory() { return nullptr; }
  /// Power is back: continues on the memory that a crash has left, with nothing of what was volatile.
  /// Emits the micro-operations of the recovery to `stream`, without begin and end; the caller executes nothing
  /// else before they have ended.
  virtual void restart(memory::SimMemory after, memory::Stream& stream);
  /// Name of a part that cannot do so without a medium; empty: none.
  [[nodiscard]] virtual std::string needing(memory::Medium medium) const {
    static_cast<void>(medium);
    return {};
  }
  /// Which of the numbers that requests have brought in (`first` .. `first + count`) are there, ascending, for
  /// the ledger of a crash test. Emits nothing.
  [[nodiscard]] virtual std::vector<std::uint64_t> present();
};

}  // namespace pmsim::system
