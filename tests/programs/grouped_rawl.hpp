#pragma once

#include <pmsim/blocks/log/rawl.hpp>
#include <pmsim/prototype.hpp>

#include <optional>
#include <vector>

/// The RAWL of the core as a program of one's own: entries in groups of two.
template <pmsim::prototype::Memory M>
class GroupedRawl {
 public:
  static constexpr auto kSites = pmsim::blocks::log::RawlLog::kSites;

  void create(M& memory) {
    place_.base = memory.allocate(pmsim::prototype::Medium::kPmem, kBytes, "log");
    log_ = Log::create(memory, place_, kOptions);
  }
  pmsim::prototype::Acknowledged run(M& memory, const pmsim::prototype::Bytes& payload) {
    log_->append(memory, payload);
    return log_->durable() == log_->tail() ? pmsim::prototype::Acknowledged::kNow
                                           : pmsim::prototype::Acknowledged::kLater;
  }
  std::optional<std::vector<pmsim::prototype::Bytes>> recover(M& memory) {
    place_.base = memory.region("log");
    log_ = Log::recover(memory, place_, kOptions);
    if (!log_)
      return std::nullopt;
    std::vector<pmsim::prototype::Bytes> found;
    log_->for_each(memory, [&](auto, auto payload) { found.emplace_back(payload.begin(), payload.end()); });
    return found;
  }

 private:
  using Log = pmsim::blocks::log::RawlLog;
  static constexpr std::uint64_t kBytes = std::uint64_t{1} << 17;
  static constexpr pmsim::blocks::log::Options kOptions{.group_commit = 2, .reach = 512};

  pmsim::blocks::log::Place place_{.bytes = kBytes};
  std::optional<Log> log_;
};
