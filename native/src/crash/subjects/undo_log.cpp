#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/undo/undo_log.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"

// Subject: transactions with an undo log over a small array.

namespace pmsim::crash {

namespace {

using blocks::SiteInfo;
using blocks::undo::Place;
using blocks::undo::RedoLog;
using blocks::undo::UndoLog;
using memory::Address;
using memory::SimMemory;
using Bytes = std::vector<std::byte>;

/// The array after recovery, and the log that has recovered it.
struct FoundArray final : Recovered {
  Bytes array;
  std::optional<UndoLog> log;  ///< nothing where create() had not finished
};

/// A program of transactions, each of one to four ranges that may overlap; some are aborted. The promise: the
/// array is as the last acknowledged transaction left it, or as the one in flight leaves it if that commits;
/// never a mix.
class UndoLogSubject final : public Subject {
 public:
  UndoLogSubject(std::uint64_t seed, Scale scale)
      : small_(scale == Scale::kSmall), random_(seed), array_(small_ ? 2 * memory::kLineBytes : 1024) {
    draw_plan(small_ ? 3 : 40);
  }

  void create(SimMemory& memory) override {
    place_.bytes = UndoLog::kHeaderBytes + kLogBytes;
    place_.base = memory.allocate(memory::Medium::kPmem, place_.bytes, {.name = "undo log"});
    base_ = memory.allocate(memory::Medium::kPmem, array_.size(), {.name = "array"});
    log_.emplace(UndoLog::create(memory, place_));
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(plan_.size()); }

  void run(SimMemory& memory, std::uint32_t index) override {
    const Transaction& transaction = plan_[index];
    target_ = array_;
    for (const Write& write : transaction.writes)
      std::ranges::copy(write.bytes, target_.begin() + static_cast<std::ptrdiff_t>(write.at));
    in_flight_ = transaction.commits;
    log_->begin(memory);
    for (const Write& write : transaction.writes) {
      log_->add_range(memory, base_ + write.at, write.bytes.size());
      memory.write(base_ + write.at, write.bytes);
    }
    if (transaction.commits) {
      log_->commit(memory);
      array_ = target_;
    } else {
      log_->abort(memory);
    }
    in_flight_ = false;
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<FoundArray>();
    found->log = UndoLog::open(memory, place_);
    if (found->log)
      found->log->recover(memory);
    found->array = content(memory);
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory&) const override {
    const auto& [found, log] = static_cast<const FoundArray&>(recovered);
    if (log_ && !log)
      return "the log was created and is gone";
    if (found != array_ && !(in_flight_ && found == target_)) {
      const auto wrong = std::ranges::mismatch(found, array_).in1 - found.begin();
      return "byte " + std::to_string(wrong) + " of the array is neither as the last transaction left it" +
             (in_flight_ ? ", nor is the array as the one in flight leaves it" : "");
    }
    return {};
  }

  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<FoundArray&>(recovered);
    if (!found.log)
      return nullptr;
    auto next = std::make_unique<UndoLogSubject>(*this);
    next->log_ = std::move(found.log);
    next->array_ = std::move(found.array);
    next->in_flight_ = false;
    next->plan_.clear();
    next->draw_plan(2);
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    std::string text = plan_[index].commits ? "commit" : "abort";
    for (const Write& write : plan_[index].writes)
      text += " " + std::to_string(write.bytes.size()) + " bytes at " + std::to_string(write.at);
    return text;
  }

 private:
  static constexpr std::uint64_t kLogBytes =
      4096;  ///< two ulogs: an entry is cut in two where the first one ends

  struct Write {
    std::uint64_t at;
    Bytes bytes;
  };
  struct Transaction {
    std::vector<Write> writes;
    bool commits;
  };

  void draw_plan(std::uint32_t transactions) {
    for (; transactions > 0; --transactions) {
      Transaction transaction{{}, random_.below(4) != 0};
      for (std::uint64_t left = 1 + random_.below(small_ ? 2 : 4); left > 0; --left) {
        // Long ones are restored by streaming, and make the log go on in its second ulog.
        const std::uint64_t most = small_ ? 24 : random_.below(4) == 0 ? array_.size() : 64;
        Bytes bytes(1 + random_.below(most));
        for (std::byte& byte : bytes)
          byte = static_cast<std::byte>(random_.next());
        transaction.writes.push_back({random_.below(array_.size() - bytes.size() + 1), std::move(bytes)});
      }
      plan_.push_back(std::move(transaction));
    }
  }

  [[nodiscard]] Bytes content(SimMemory& memory) const {
    Bytes bytes(array_.size());
    memory.read(base_, bytes);
    return bytes;
  }

  bool small_;
  Random random_;
  Bytes array_;  ///< as acknowledged
  Bytes target_;
  bool in_flight_ = false;  ///< a transaction that may already count
  std::vector<Transaction> plan_;
  Place place_;
  Address base_ = 0;
  std::optional<UndoLog> log_;
};

const std::vector<SiteInfo>& sites() {
  static const std::vector<SiteInfo> all = [] {
    std::vector<SiteInfo> sites(UndoLog::kSites.begin(), UndoLog::kSites.end());
    sites.insert(sites.end(), RedoLog::kWordSites.begin(), RedoLog::kWordSites.end());
    return sites;
  }();
  return all;
}

}  // namespace

extern const SubjectKind kUndoLog;
const SubjectKind kUndoLog{"undo-log", "transactions with an undo log, as PMDK has them", sites(),
                           [](std::uint64_t seed, Scale scale) -> std::unique_ptr<Subject> {
                             return std::make_unique<UndoLogSubject>(seed, scale);
                           }};

}  // namespace pmsim::crash
