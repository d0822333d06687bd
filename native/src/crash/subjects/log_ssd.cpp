#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"
#include "pmsim/engines/wal/sector_log.hpp"

// Subject: the write-ahead log on an SSD, with entries that become durable one by one or in groups.

namespace pmsim::crash {

namespace {

using blocks::log::Lsn;
using engines::wal::SectorLog;
using memory::kSectorBytes;
using memory::SimMemory;

/// The first bytes name the entry; all of them depend on it, so that no entry passes for another.
using Payload = std::vector<std::byte>;

Payload payload(std::uint64_t name, std::size_t bytes) {
  Payload made(bytes);
  Random random(mix64(name));
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(made.data() + at, &word, std::min<std::size_t>(8, bytes - at));
  }
  return made;
}

class Found final : public Recovered {
 public:
  std::optional<SectorLog> log;
  std::vector<Payload> entries;
  std::vector<Lsn> lsns;
  bool restarted = false;  ///< the restart record had room
};

/// Groups of appended entries, each acknowledged as a whole, truncations and clean restarts of one log.
///
/// Promise: the entries found are those appended since the last truncation, in order, none of the acknowledged
/// ones missing; behind them come restart records only. A truncation in flight leaves either all or none of the
/// entries that it drops.
class SectorLogSubject final : public Subject {
 public:
  SectorLogSubject(std::uint64_t seed, Scale scale) : random_(mix64(seed)) {
    const bool small = scale == Scale::kSmall;
    log_bytes_ = (small ? 7 : 12) * kSectorBytes;
    for (std::uint32_t index = 0; index < (small ? 3U : 30U); ++index)
      plan_.push_back(next_operation());
    for (std::uint32_t index = 0; index < kOperationsAfterRecovery; ++index)
      after_recovery_.push_back(next_operation());
  }

  void create(SimMemory& memory) override {
    device_ = memory.allocate(memory::Medium::kBlock, log_bytes_, {.name = "log"});
    staging_ = memory.allocate(memory::Medium::kDram, kMembers * kStaging, {.name = "staging buffers"});
    log_ = SectorLog::create(memory, device_, log_bytes_, staging_, kStaging);
    created_ = true;
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const Operation& operation = plan_[index];
    switch (operation.kind) {
      case Kind::kGroup:
        return append(memory, operation.sizes);
      case Kind::kTruncate:
        return truncate(memory, (entries_.size() + 1) / 2);
      case Kind::kRestart:
        log_ = SectorLog::recover(memory, device_, log_bytes_, staging_, kStaging);
        return;
    }
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<Found>();
    found->log = SectorLog::recover(memory, device_, log_bytes_, staging_, kStaging);
    if (!found->log)
      return found;
    SectorLog& log = *found->log;
    // What every restart appends, as engines do: over whatever the crash has left behind the tail.
    const Payload restart = payload(kRestartName, kRestartBytes);
    if (found->restarted = log.fits(restart.size()); found->restarted) {
      memory.write(staging_ + SectorLog::kHeadBytes, restart);
      log.append(memory, restart.size());
    }
    Payload entry;
    Lsn at = log.head();
    while (const std::optional<Lsn> next = log.read(memory, at, entry, staging_)) {
      found->entries.push_back(entry);
      found->lsns.push_back(at);
      at = *next;
    }
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory&) const override {
    const auto& found = static_cast<const Found&>(recovered);
    if (!found.log)
      return created_ ? "the log is gone although it had been created" : "";
    if (truncating_ > 0 && matches(found, truncating_, entries_.size()))
      return "";
    for (std::size_t end = truncating_ > 0 ? entries_.size() : acknowledged_; end <= entries_.size(); ++end) {
      if (matches(found, 0, end))
        return "";
    }
    return "found " + std::to_string(found.entries.size()) + " entries" + describe(found) + " instead of " +
           std::to_string(acknowledged_) + " to " + std::to_string(entries_.size()) +
           " of the appended ones and restart records";
  }

  /// All entries that recovery has found count as acknowledged, restart records, too.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<Found&>(recovered);
    if (!found.log)
      return nullptr;
    auto next = std::make_unique<SectorLogSubject>(*this);
    next->log_ = std::move(found.log);
    next->plan_ = after_recovery_;
    next->entries_ = std::move(found.entries);
    next->lsns_ = std::move(found.lsns);
    next->acknowledged_ = next->entries_.size();
    next->truncating_ = 0;
    next->created_ = true;
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const Operation& operation = plan_[index];
    switch (operation.kind) {
      case Kind::kGroup: {
        std::string text = "append (or truncate, if full) a group of";
        for (const std::size_t bytes : operation.sizes)
          text += " " + std::to_string(bytes);
        return text + " bytes";
      }
      case Kind::kTruncate:
        return "truncate the older half";
      case Kind::kRestart:
        break;
    }
    return "restart";
  }

 private:
  static constexpr std::uint32_t kOperationsAfterRecovery = 3;
  static constexpr std::size_t kMembers = 3;
  static constexpr std::uint64_t kStaging = 3 * kSectorBytes;
  static constexpr std::uint64_t kRestartName = ~std::uint64_t{0};
  static constexpr std::size_t kRestartBytes = 72;

  enum class Kind : std::uint8_t { kGroup, kTruncate, kRestart };
  struct Operation {
    Kind kind;
    std::vector<std::size_t> sizes = {};
  };

  [[nodiscard]] Operation next_operation() {
    const std::uint64_t dice = random_.below(12);
    if (dice < 2)
      return {dice == 0 ? Kind::kTruncate : Kind::kRestart};
    // Often as long as the restart record: then that ends where an entry that was lost ended.
    std::vector<std::size_t> sizes(1 + random_.below(kMembers));
    for (std::size_t& bytes : sizes)
      bytes = random_.below(3) == 0 ? 500 + random_.below(400) : kRestartBytes;
    return {Kind::kGroup, sizes};
  }

  void append(SimMemory& memory, const std::vector<std::size_t>& sizes) {
    std::uint64_t gathered = 0;
    for (std::size_t member = 0; member < sizes.size(); ++member) {
      if (!log_->fits(sizes[member]))
        break;
      const Address staging = staging_ + member * kStaging;
      entries_.push_back(payload(next_name_++, sizes[member]));
      lsns_.push_back(log_->tail());
      memory.write(staging + SectorLog::kHeadBytes, entries_.back());
      gathered = log_->gather(memory, sizes[member], staging);
    }
    if (gathered == 0)
      return truncate(memory, entries_.size());
    SectorLog::commit(memory, gathered);
    acknowledged_ = entries_.size();
  }

  void truncate(SimMemory& memory, std::size_t count) {
    if (count == 0)
      return;
    truncating_ = count;
    log_->truncate_to(memory, count < lsns_.size() ? lsns_[count] : log_->tail());
    truncating_ = 0;
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
    lsns_.erase(lsns_.begin(), lsns_.begin() + static_cast<std::ptrdiff_t>(count));
    acknowledged_ = entries_.size();
  }

  /// Whether the entries [from, end) and restart records, at least one if it had room, are what was found.
  [[nodiscard]] bool matches(const Found& found, std::size_t from, std::size_t end) const {
    const std::size_t own = end - from;
    if (found.entries.size() < own + (found.restarted ? 1 : 0))
      return false;
    const Payload restart = payload(kRestartName, kRestartBytes);
    for (std::size_t index = 0; index < found.entries.size(); ++index) {
      if (found.entries[index] != (index < own ? entries_[from + index] : restart))
        return false;
    }
    return true;
  }

  [[nodiscard]] std::string describe(const Found& found) const {
    const Payload restart = payload(kRestartName, kRestartBytes);
    std::string text;
    for (const Payload& entry : found.entries) {
      const auto known = std::ranges::find(entries_, entry);
      text += (text.empty() ? " (" : ", ") + (entry == restart ? std::string("restart")
                                              : known != entries_.end()
                                                  ? "number " + std::to_string(known - entries_.begin() + 1)
                                                  : std::to_string(entry.size()) + " bytes from before");
    }
    return text + (text.empty() ? "" : ")");
  }

  using Address = memory::Address;
  Random random_;
  std::uint64_t log_bytes_;
  std::vector<Operation> plan_;
  std::vector<Operation> after_recovery_;
  Address device_ = 0;
  Address staging_ = 0;
  std::optional<SectorLog> log_;
  std::uint64_t next_name_ = 1;
  std::vector<Payload> entries_;  ///< appended, and not truncated
  std::vector<Lsn> lsns_;
  std::size_t acknowledged_ = 0;
  std::size_t truncating_ = 0;  ///< so many entries are being dropped
  bool created_ = false;
};

std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) {
  return std::make_unique<SectorLogSubject>(seed, scale);
}

}  // namespace

extern const SubjectKind kLogSsd;
const SubjectKind kLogSsd{"log-ssd", "write-ahead log in sectors of an SSD, with groups of entries",
                          SectorLog::kSites, make};

}  // namespace pmsim::crash
