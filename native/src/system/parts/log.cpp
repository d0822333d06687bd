#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "pmsim/blocks/log/any.hpp"
#include "pmsim/system/part.hpp"

namespace pmsim::system {

namespace {

using blocks::log::AnyLog;
using blocks::log::Place;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
/// A log that is full gives up so much of itself at once: who cleans ahead of it does not stop it. All of a log
/// that has to be zeroed (PopLog's) would be a millisecond for every 4 MiB, and one append would take it.
constexpr std::uint64_t kPieces = 256;
constexpr std::uint64_t kSmallestPiece = 4096;  ///< each moves the head, durably

/// A log, and where it can be cut: the first entry of each piece of it, oldest first.
struct Pieces {
  AnyLog log;
  std::deque<blocks::log::Lsn> cuts;

  void has(blocks::log::Lsn entry) {
    if (entry - (cuts.empty() ? log.head() : cuts.back()) >= std::max(log.capacity() / kPieces, kSmallestPiece))
      cuts.push_back(entry);
  }
  void truncate(memory::SimMemory& memory) {
    log.truncate(memory);
    cuts.clear();
  }
  void drop_oldest(memory::SimMemory& memory) {
    if (cuts.empty())
      return truncate(memory);
    log.commit(memory);
    log.truncate_to(memory, cuts.front());
    cuts.pop_front();
  }
};

/// Transaction logs in memory, one of each worker's own. append: the entries first .. first + count - 1, then
/// one commit (group commit by the caller); an entry's payload begins with its number. truncate: forgets the
/// worker's entries. A full log is truncated by the append that finds it full: by a piece, or as a whole where
/// the algorithm knows no entries.
class Log final : public Part {
 public:
  Log(workloads::Parameters& parameters, const PartContext& context) {
    algorithm_ =
        parameters.choice("algorithm", {blocks::log::kAlgorithms.begin(), blocks::log::kAlgorithms.end()});
    options_.layout = blocks::log::layout_named(
        parameters.choice("layout", {blocks::log::kLayouts.begin(), blocks::log::kLayouts.end()}));
    options_.group_commit = std::uint32_t{1} << 31;  // commits are asked for
    const auto entry_size = static_cast<std::size_t>(parameters.number("entry_size", 8, 1 << 20));
    if (entry_size % 8 != 0)
      parameters.refuse("entry_size", "must be a multiple of 8 bytes");
    const auto log_size = static_cast<std::uint64_t>(parameters.number("log_size", 4096, kMaxBytes));
    largest_group_ = static_cast<std::uint64_t>(parameters.number("largest_group", 1, 1 << 16));
    const bool dram = parameters.choice("memory", {"dram", "pmem"}) == "dram";
    if (!dram && context.platform.pmem.dimms == 0)
      parameters.refuse("memory", "the platform has no persistent memory; choose dram");
    has_entries_ = blocks::log::has_entries(algorithm_);
    if (!has_entries_ && options_.layout != blocks::log::Layout::kNaive)
      parameters.refuse("layout", algorithm_ + " has no other than naive");
    Random random(mix64(context.seed));
    payload_.resize(entry_size);
    for (std::size_t at = 0; at < entry_size; at += 8) {
      const std::uint64_t word = random.next();
      std::memcpy(payload_.data() + at, &word, sizeof word);
    }
    options_.key = random.next();
    for (std::uint32_t worker = 0; worker < context.workers; ++worker) {
      Place place{.bytes = log_size};
      place.base = context.memory.allocate(dram ? memory::Medium::kDram : memory::Medium::kPmem, log_size,
                                           {.name = "log", .alignment = 1 << 21});
      if (options_.layout == blocks::log::Layout::kDramTail) {
        place.buffer_bytes = largest_group_ * (entry_size + entry_size / 32 + 128);
        place.buffer =
            context.memory.allocate(memory::Medium::kDram, place.buffer_bytes, {.name = "tail buffer"});
      }
      places_.push_back(place);
      logs_.push_back({AnyLog::create(context.memory, algorithm_, place, options_), {}});
      if (!logs_.back().log.fits(entry_size))
        parameters.refuse("log_size", "too small for one entry");
    }
    pmem_bytes_ = dram ? 0 : log_size * context.workers;
  }

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {"append", "truncate"}; }

  std::uint64_t execute(memory::SimMemory& memory, std::uint32_t worker, const Request& request) override {
    Pieces& pieces = logs_[worker];
    if (request.kind == 1) {
      pieces.truncate(memory);
      ++truncations_;
      return 0;
    }
    if (request.count > largest_group_)
      throw ConfigError("log.append: a group of " + std::to_string(request.count) +
                        " entries; largest_group is " + std::to_string(largest_group_));
    for (std::uint64_t entry = request.first; entry != request.first + request.count; ++entry) {
      while (!pieces.log.fits(payload_.size())) [[unlikely]] {
        pieces.drop_oldest(memory);
        ++truncations_;
      }
      std::memcpy(payload_.data(), &entry, sizeof entry);
      const blocks::log::Lsn lsn = pieces.log.append(memory, payload_);
      if (has_entries_)
        pieces.has(lsn);
    }
    pieces.log.commit(memory);
    entries_ += request.count;
    return request.count;
  }

  void recover(memory::SimMemory& memory) override {
    for (std::size_t worker = 0; worker < logs_.size(); ++worker) {
      std::optional<AnyLog> log = AnyLog::recover(memory, algorithm_, places_[worker], options_);
      Pieces& pieces = logs_[worker];
      pieces.log = log ? std::move(*log) : AnyLog::create(memory, algorithm_, places_[worker], options_);
      // The scan of recovery has come by all entries that there are, and so by the cuts among them.
      std::erase_if(pieces.cuts,
                    [&](blocks::log::Lsn cut) { return cut <= pieces.log.head() || cut >= pieces.log.tail(); });
    }
  }

  [[nodiscard]] std::uint64_t pmem_bytes() const override { return pmem_bytes_; }
  [[nodiscard]] std::map<std::string, double> facts() const override {
    return {{"entries", static_cast<double>(entries_)},
            {"truncations", static_cast<double>(truncations_)},
            {"bytes_per_entry", static_cast<double>(logs_.front().log.footprint(payload_.size()))}};
  }
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> present(memory::SimMemory& memory) override {
    std::vector<std::uint64_t> numbers;
    for (const Pieces& pieces : logs_) {
      pieces.log.for_each(memory, [&](blocks::log::Lsn, std::span<const std::byte> payload) {
        std::uint64_t number = 0;
        std::memcpy(&number, payload.data(), sizeof number);
        numbers.push_back(number);
      });
    }
    std::ranges::sort(numbers);
    return numbers;
  }

 private:
  std::string algorithm_;
  bool has_entries_ = true;
  blocks::log::Options options_;
  std::vector<std::byte> payload_;
  std::uint64_t largest_group_ = 1;
  std::vector<Place> places_;
  std::vector<Pieces> logs_;
  std::uint64_t pmem_bytes_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t truncations_ = 0;
};

}  // namespace

std::unique_ptr<Part> make_log(workloads::Parameters& parameters, const PartContext& context) {
  return std::make_unique<Log>(parameters, context);
}

}  // namespace pmsim::system
