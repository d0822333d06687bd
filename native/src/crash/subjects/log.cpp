#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/blocks/log/any.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"

namespace pmsim::crash {

namespace {

using blocks::SiteInfo;
using blocks::log::AnyLog;
using blocks::log::Layout;
using blocks::log::Lsn;
using blocks::log::Place;
using memory::Address;
using memory::SimMemory;

using Payload = std::vector<std::byte>;
using Payloads = std::vector<Payload>;

/// A word with exactly 32 bits set: an old word in the place of a new one leaves every count of bits as it is.
/// At the end of a payload, what fits of it.
void put_balanced(Payload& payload, std::size_t at, std::uint64_t value) {
  const std::uint64_t half = value & 0xffff'ffff;
  const std::uint64_t word = half | ~half << 32;
  std::memcpy(payload.data() + at, &word, std::min(sizeof word, payload.size() - at));
}

/// What every restart appends before anything else, as storage engines do: so the checker's crashes during
/// recovery also hit an append over whatever the first crash has left behind the tail.
Payload restart_record(std::size_t bytes) {
  Payload payload(bytes);
  for (std::size_t at = 0; at < payload.size(); at += 8)
    put_balanced(payload, at, 0x5245'5354 + at);
  return payload;
}

class Found final : public Recovered {
 public:
  bool formatted = false;
  bool restarted = false;  ///< the restart record had room
  Payloads entries;
  std::vector<Lsn> lsns;  ///< of the entries
  std::optional<AnyLog> log;
};

/// Appends, truncations and clean restarts of one log.
///
/// Promise: the entries found are those appended since the last truncation, in order, none of the committed
/// ones missing; behind them come restart records only. A truncation in flight leaves either all or none
/// of the entries that it drops. Free space is as the log's rule has it, if it has one: a word that is not may
/// complete a torn entry, but only much later, when the log has come round.
class LogSubject final : public Subject {
 public:
  LogSubject(std::string_view algorithm, Layout layout, std::uint64_t seed, Scale scale)
      : algorithm_(algorithm), dense_(!blocks::log::has_entries(algorithm)), random_(mix64(seed)) {
    const bool small = scale == Scale::kSmall;
    place_.bytes = small ? 1024 : 2048;
    place_.buffer_bytes = place_.bytes;
    options_ = {.layout = layout,
                .group_commit = 1 + static_cast<std::uint32_t>(random_.below(small ? 2 : 4)),
                .fields = 3,
                .key = random_.next(),
                .reach = memory::kLineBytes};
    restarts_vary_ = !dense_ && seed % 2 == 0;
    const std::size_t count = small ? 5 : 60;
    for (std::size_t i = 0; i < count; ++i)
      plan_.push_back(next_operation(small));
    for (std::size_t i = 0; i < kOperationsAfterRecovery; ++i)
      after_recovery_.push_back(next_operation(small));
  }

  void create(SimMemory& memory) override {
    allocate(memory);
    log_ = AnyLog::create(memory, algorithm_, place_, options_);
    created_ = true;
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const Operation& operation = plan_[index];
    switch (operation.kind) {
      case Kind::kAppend:
        if (log_->fits(operation.payload.size()))
          return append(memory, operation.payload);
        return truncate(memory);
      case Kind::kFill: {
        Payload payload = operation.payload;
        while (!payload.empty() && !log_->fits(payload.size()))
          payload.pop_back();
        return payload.empty() ? truncate(memory) : append(memory, payload);
      }
      case Kind::kTruncate:
        return truncate(memory);
      case Kind::kTruncatePart:
        return dense_ ? truncate(memory) : truncate_part(memory, (committed_ + 1) / 2);
      case Kind::kTruncateMost:
        return dense_ ? truncate(memory)
                      : truncate_part(memory, committed_ - std::min<std::size_t>(committed_, 1));
      case Kind::kRestart:
        commit(memory);
        log_ = AnyLog::recover(memory, algorithm_, place_, options_);
        return;
    }
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<Found>();
    std::optional<AnyLog> log = AnyLog::recover(memory, algorithm_, place_, options_);
    if (!log)
      return found;
    found->formatted = true;
    const Payload& restart = restart_of(memory, *log);
    found->restarted = log->fits(restart.size());
    if (found->restarted) {
      log->append(memory, restart);
      log->commit(memory);
      if (restarts_vary_)  // whoever comes next sees what the record has led to
        log = AnyLog::recover(memory, algorithm_, place_, options_);
    }
    log->for_each(memory, [&](Lsn lsn, std::span<const std::byte> payload) {
      found->lsns.push_back(lsn);
      found->entries.emplace_back(payload.begin(), payload.end());
    });
    found->log = std::move(log);
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory& memory) const override {
    const auto& found = static_cast<const Found&>(recovered);
    if (!found.formatted)
      return created_ ? "the log is gone although it had been created" : "";
    for (std::size_t count = committed_; count <= appended_.size(); ++count) {
      if (matches(found, count) || (truncating_ > 0 && matches(found, count, truncating_)))
        return check_free_space(*found.log, memory);
    }
    return describe_found(found) + " instead of " + std::to_string(committed_) + " to " +
           std::to_string(appended_.size()) + " of the appended ones and restart records";
  }

  /// Goes on with the recovered log. All entries that recovery has found count as committed, restart records,
  /// too.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<Found&>(recovered);
    if (!found.formatted)
      return nullptr;
    auto next = std::make_unique<LogSubject>(*this);
    next->log_ = std::move(found.log);
    next->plan_ = after_recovery_;
    next->appended_ = std::move(found.entries);
    next->lsns_ = std::move(found.lsns);
    next->committed_ = next->appended_.size();
    next->pending_ = 0;
    next->created_ = true;
    next->truncating_ = 0;
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const Operation& operation = plan_[index];
    switch (operation.kind) {
      case Kind::kAppend:
        return "append " + std::to_string(operation.payload.size()) +
               " bytes (or truncate, if full; group of " + std::to_string(options_.group_commit) + ")";
      case Kind::kFill:
        return "append as many bytes as fit (or truncate, if full)";
      case Kind::kTruncate:
        return "commit and truncate";
      case Kind::kTruncatePart:
        return "truncate the older half of the committed entries";
      case Kind::kTruncateMost:
        return "truncate all committed entries but the newest";
      default:
        return "commit and restart";
    }
  }

 private:
  static constexpr std::size_t kOperationsAfterRecovery = 3;
  static constexpr Lsn kLengthAt = 8;  ///< in the header of an entry

  enum class Kind : std::uint8_t { kAppend, kFill, kTruncate, kTruncatePart, kTruncateMost, kRestart };
  struct Operation {
    Kind kind;
    Payload payload;
  };

  [[nodiscard]] Operation next_operation(bool small) {
    const std::uint64_t dice = random_.below(small ? 12 : 20);
    if (dice == 0)
      return {Kind::kTruncate, {}};
    if (dice == 1)
      return {Kind::kRestart, {}};
    if (dice == 2 || (dice == 4 && !small))
      return {random_.below(2) == 0 ? Kind::kTruncatePart : Kind::kTruncateMost, {}};
    const bool fills = dice == 3 && !small;
    // Often as long as the restart record, so that it ends where a torn entry ended, or so short that several
    // share a line. Sometimes not whole words.
    const std::uint64_t words = small ? 8 : random_.below(3) == 0 ? 3 : 28;
    Payload payload(fills ? place_.bytes : random_.below(3) == 0 ? restart_.size() : 8 * random_.below(words));
    if (random_.below(4) == 0)
      payload.resize(payload.size() + random_.below(8));
    const bool zeros = random_.below(8) == 0;
    for (std::size_t at = 0; at < payload.size() && !zeros; at += 8)
      put_balanced(payload, at, random_.next());
    return {fills ? Kind::kFill : Kind::kAppend, payload};
  }

  /// What this restart appends. In half of the programs not as long as what already lies behind the tail: after
  /// two crashes in a row nothing leads from there to the torn entries behind it, but the record of the second
  /// restart may end where they begin.
  [[nodiscard]] const Payload& restart_of(SimMemory& memory, const AnyLog& log) const {
    if (!restarts_vary_)
      return restart_;
    const Address space = place_.base + place_.bytes - log.capacity();
    const auto length = memory.load<std::uint32_t>(space + (log.tail() + kLengthAt) % log.capacity());
    return length == restart_.size() ? shorter_restart_ : restart_;
  }
  [[nodiscard]] bool is_restart(const Payload& entry) const {
    return entry == restart_ || (restarts_vary_ && entry == shorter_restart_);
  }

  void allocate(SimMemory& memory) {
    place_.base = memory.allocate(memory::Medium::kPmem, place_.bytes, {.name = "log"});
    place_.buffer = memory.allocate(memory::Medium::kDram, place_.buffer_bytes, {.name = "tail buffer"});
  }

  void append(SimMemory& memory, const Payload& payload) {
    appended_.push_back(payload);
    lsns_.push_back(log_->append(memory, payload));
    if (++pending_ == options_.group_commit) {
      pending_ = 0;
      committed_ = appended_.size();
    }
  }
  void commit(SimMemory& memory) {
    log_->commit(memory);
    pending_ = 0;
    committed_ = appended_.size();
  }
  void truncate(SimMemory& memory) {
    commit(memory);
    truncating_ = appended_.size();
    log_->truncate(memory);
    drop(appended_.size());
  }
  /// Of the committed entries the oldest; others may await their commit.
  void truncate_part(SimMemory& memory, std::size_t count) {
    truncating_ = count;
    log_->truncate_to(memory, count < lsns_.size() ? lsns_[count] : log_->tail());
    drop(count);
  }
  void drop(std::size_t count) {
    truncating_ = 0;
    appended_.erase(appended_.begin(), appended_.begin() + static_cast<std::ptrdiff_t>(count));
    lsns_.erase(lsns_.begin(), lsns_.begin() + static_cast<std::ptrdiff_t>(count));
    committed_ -= count;
  }

  [[nodiscard]] std::string check_free_space(const AnyLog& log, const SimMemory& memory) const {
    const Address space = place_.base + place_.bytes - log.capacity();
    std::vector<std::uint64_t> words(log.capacity() / 8);
    memory.peek(space, std::as_writable_bytes(std::span(words)));
    for (Lsn at = log.tail(); at < log.head() + log.capacity(); at += 8) {
      if (!log.fresh(words[at % log.capacity() / 8], at))
        return "free space holds an old word " + std::to_string(at - log.tail()) + " bytes behind the tail";
    }
    return "";
  }

  /// Whether the entries [from, end) and restart records, at least one if it had room, are what was found.
  [[nodiscard]] bool matches(const Found& found, std::size_t end, std::size_t from = 0) const {
    if (dense_)
      return matches_dense(found, end, from);
    const std::size_t size = found.entries.size();
    const std::size_t count = end - from;
    if (size < count + (found.restarted ? 1 : 0))
      return false;
    for (std::size_t i = 0; i < size; ++i) {
      if (i < count ? found.entries[i] != appended_[from + i] : !is_restart(found.entries[i]))
        return false;
    }
    return true;
  }
  /// pmemlog has bytes, not entries.
  [[nodiscard]] bool matches_dense(const Found& found, std::size_t end, std::size_t from) const {
    Payload expected;
    for (std::size_t i = from; i < end; ++i)
      expected.insert(expected.end(), appended_[i].begin(), appended_[i].end());
    const std::size_t own = expected.size();
    const Payload bytes = found.entries.empty() ? Payload{} : found.entries.front();
    while (expected.size() < bytes.size())
      expected.insert(expected.end(), restart_.begin(), restart_.end());
    return bytes == expected && bytes.size() >= own + (found.restarted ? restart_.size() : 0);
  }

  [[nodiscard]] std::string describe_found(const Found& found) const {
    if (dense_)
      return "found " + std::to_string(found.entries.empty() ? 0 : found.entries.front().size()) + " bytes";
    std::string text = "found " + std::to_string(found.entries.size()) + " entries (";
    for (std::size_t i = 0; i < found.entries.size(); ++i) {
      if (i == 5)
        return text + ", ...)";
      const Payload& entry = found.entries[i];
      const bool known = i < appended_.size() && entry == appended_[i];
      text += (i > 0 ? ", " : "") + std::to_string(entry.size()) +
              (known               ? " as appended"
               : is_restart(entry) ? " restart"
                                   : " bytes that nobody appended");
    }
    return text + ")";
  }

  std::string_view algorithm_;
  bool dense_;
  Random random_;
  Payload restart_ = restart_record(72);
  Payload shorter_restart_ = restart_record(40);
  bool restarts_vary_ = false;
  Place place_;
  blocks::log::Options options_;
  std::vector<Operation> plan_;
  std::vector<Operation> after_recovery_;
  std::optional<AnyLog> log_;
  Payloads appended_;  ///< and not truncated
  std::vector<Lsn> lsns_;
  std::size_t committed_ = 0;
  std::uint32_t pending_ = 0;
  bool created_ = false;
  std::size_t truncating_ = 0;  ///< so many entries are being dropped
};

constexpr std::array<std::string_view, 3> kLayoutTitles{", dense", ", padded to lines", ", last line in DRAM"};

template <typename Log, std::size_t kName, Layout kLayout>
const SubjectKind* kind() {
  constexpr auto kAt = static_cast<std::size_t>(kLayout);
  static constexpr blocks::Named kKnown = Log::kNames[kName];
  static const auto named = [](std::string_view of_log, std::string_view of_layout) {
    return std::string(of_log) + (Log::kHasEntries ? std::string(of_layout) : "");
  };
  static const std::string name = named(kKnown.name, "-" + std::string(blocks::log::kLayouts[kAt]));
  static const std::string title = named(kKnown.title, kLayoutTitles[kAt]);
  static const std::vector<SiteInfo> sites = Log::sites(kLayout);
  static const SubjectKind kind{
      name, title, sites, [](std::uint64_t seed, Scale scale) {
        return std::unique_ptr<Subject>(std::make_unique<LogSubject>(kKnown.name, kLayout, seed, scale));
      }};
  return &kind;
}

template <typename Log, std::size_t kName>
void add(std::vector<const SubjectKind*>& all) {
  all.push_back(kind<Log, kName, Layout::kNaive>());
  if constexpr (Log::kHasEntries) {
    all.push_back(kind<Log, kName, Layout::kPadded>());
    all.push_back(kind<Log, kName, Layout::kDramTail>());
  }
}

}  // namespace

std::vector<const SubjectKind*> log_subjects() {
  std::vector<const SubjectKind*> all;
  const auto of_log = [&all]<typename Log>(const Log*) {
    [&all]<std::size_t... kName>(std::index_sequence<kName...>) {
      (add<Log, kName>(all), ...);
    }(std::make_index_sequence<Log::kNames.size()>());
  };
  [&]<typename... Logs>(const std::tuple<Logs...>*) {
    (of_log(static_cast<const Logs*>(nullptr)), ...);
  }(static_cast<const blocks::log::AllLogs*>(nullptr));
  return all;
}

}  // namespace pmsim::crash
