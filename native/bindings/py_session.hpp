#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/system/session.hpp"

namespace pmsim::bindings {

[[nodiscard]] inline memory::Medium medium_named(std::string_view name) {
  if (name == "pmem")
    return memory::Medium::kPmem;
  if (name == "block")
    return memory::Medium::kBlock;
  throw ConfigError("device: \"" + std::string(name) + "\" is unknown; choose pmem or block");
}

/// A session as Python drives it: one call per event, none per micro-operation.
class PySession {
 public:
  PySession(std::unique_ptr<system::Service> service, const machine::PlatformParams& platform,
            std::uint32_t workers, std::uint64_t seed)
      : session_(std::move(service), platform, workers, seed) {
    session_.on_poll(check_signals);
  }

  void acknowledge_in_order() noexcept { session_.acknowledge_in_order(); }
  void submit(std::uint32_t worker, std::uint64_t id, std::uint32_t kind, std::uint64_t first,
              std::uint64_t count, Picoseconds at) {
    session_.submit(worker, {id, kind, first, count}, at);
  }

  void warm_up(const system::Mix& mix, std::uint64_t requests, const pybind11::object& watch) {
    PyWatch waiting(watch);
    const pybind11::gil_scoped_release released;
    session_.warm_up(mix, requests, waiting.watch());
  }

  /// A number: nothing is due up to `before`, and that is when there is something to do next. Else what is due,
  /// its time and that number.
  pybind11::object advance(Picoseconds before) {
    const Picoseconds at = session_.advance(before);
    if (at == kNever)
      return pybind11::int_(session_.next());
    session_.take_due(due_);
    pybind11::list completions(due_.size());
    for (std::size_t index = 0; index < due_.size(); ++index) {
      const system::Completion& done = due_[index];
      completions[index] = pybind11::make_tuple(done.request, done.worker, done.begin, done.result);
    }
    return pybind11::make_tuple(at, std::move(completions), session_.next());
  }

  [[nodiscard]] Picoseconds next() const { return session_.next(); }

  [[nodiscard]] std::vector<std::string> kinds() {
    const std::vector<std::string_view> names = session_.service().kinds();
    return {names.begin(), names.end()};
  }

  [[nodiscard]] pybind11::dict counters(Picoseconds at) {
    pybind11::dict counters;
    session_.counters(at).for_each(
        [&](std::string_view name, std::int64_t value) { counters[pybind11::str(name)] = value; });
    return counters;
  }

  std::uint32_t crash(Picoseconds at, Picoseconds restart_at, std::uint64_t id, std::uint64_t seed,
                      const std::string& lost) {
    return session_.crash(at, restart_at, id, seed,
                          lost.empty() ? std::nullopt : std::optional(medium_named(lost)));
  }
  void stall(const std::string& device, Picoseconds at, Picoseconds duration) {
    session_.stall(medium_named(device), at, duration);
  }
  void slow(const std::string& device, Picoseconds at, std::int64_t percent) {
    session_.slow(medium_named(device), at, percent);
  }

  [[nodiscard]] std::vector<std::uint64_t> present() { return session_.service().present(); }
  [[nodiscard]] std::map<std::string, double> facts() { return session_.service().facts(); }
  [[nodiscard]] std::int64_t micro_ops() const { return session_.micro_ops(); }
  [[nodiscard]] system::Session& native() noexcept { return session_; }
  [[nodiscard]] std::uint32_t workers() const { return session_.workers(); }

 private:
  system::Session session_;
  std::vector<system::Completion> due_;
};

}  // namespace pmsim::bindings
