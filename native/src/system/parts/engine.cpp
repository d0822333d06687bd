#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "engine_parameters.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/poll.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/system/part.hpp"

namespace pmsim::system {

namespace {

using engines::Engine;
using engines::EngineOptions;
using memory::Medium;
using memory::SimMemory;

/// Rows with the keys 0, 1, 2 ... that begin with the number 0.
///
/// An engine fences when all rows are loaded. Until then a memory that can be crashed would have to follow
/// every line of the table, each with all that it may hold: these fences let it forget what is durable. They
/// take no time, and after the engine's own nothing is different.
class FreshRows final : public engines::RowSource {
 public:
  FreshRows(SimMemory& memory, std::uint64_t rows, Poll poll)
      : memory_(memory), rows_(rows), poll_(std::move(poll)) {
    poll_.expect(rows);
  }
  [[nodiscard]] std::uint64_t rows() const override { return rows_; }
  std::uint64_t next(std::span<std::byte> payload) override {
    std::memset(payload.data(), 0, payload.size());
    poll_.worked();
    if (next_ % kRowsPerFence == 0)
      memory_.sfence();
    return next_++;
  }

 private:
  static constexpr std::uint64_t kRowsPerFence = 64;

  SimMemory& memory_;
  std::uint64_t rows_;
  Poll poll_;
  std::uint64_t next_ = 0;
};

/// A storage engine with one table. Each request is a transaction:
///
///  - read, update: `count` rows, the one with key `first` and others scattered over the table by it (all of
///  one
///    transaction); an update writes the request's id + 1 into the first eight bytes. Result: rows found.
///  - scan: up to `count` rows from key `first` on.
///  - checkpoint: everything committed goes to its home tier, the log is truncated.
///
/// The engines execute one transaction at a time; what workers wait for each other is in the engine's latches
/// (engines/engine.hpp).
class EnginePart final : public Part {
 public:
  EnginePart(workloads::Parameters& parameters, const PartContext& context)
      : options_(engine_options(parameters, context.workers, context.seed)),
        rows_(static_cast<std::uint64_t>(parameters.number("rows", 1, kMaxEngineBytes))),
        row_bytes_(static_cast<std::uint32_t>(parameters.number("row_size", 8, 4096))),
        shared_(context.workers > 1) {
    const std::uint64_t pmem_before = bytes_in_use(context.memory, Medium::kPmem);
    const std::uint64_t block_before = bytes_in_use(context.memory, Medium::kBlock);
    engine_ = engines::engine_named<SimMemory>(options_.engine).create(context.memory, options_);
    FreshRows rows(context.memory, rows_, Poll(context.watch, Phase::kLoad));
    table_ = engine_->load(context.memory, {.name = "rows", .key_bytes = 8, .payload_bytes = row_bytes_}, rows,
                           kLeafFill);
    place_ = engine_->place();
    pmem_bytes_ = bytes_in_use(context.memory, Medium::kPmem) - pmem_before;
    block_bytes_ = bytes_in_use(context.memory, Medium::kBlock) - block_before;
    bytes_.resize(row_bytes_);
  }

  [[nodiscard]] std::vector<std::string_view> kinds() const override {
    return {"read", "update", "scan", "checkpoint"};
  }

  std::uint64_t execute(SimMemory& memory, std::uint32_t worker, const Request& request) override {
    std::uint64_t found = 0;
    engine_->work_as(worker);
    switch (request.kind) {
      case 0:
        engine_->begin(memory);
        for (std::uint64_t number = 0; number < request.count; ++number)
          found += engine_->read(memory, table_, key(request, number), 0, bytes_) ? 1 : 0;
        engine_->commit(memory);
        break;
      case 1: {
        const std::uint64_t mark = request.id + 1;
        engine_->begin(memory);
        for (std::uint64_t number = 0; number < request.count; ++number) {
          found += engine_->update(memory, table_, key(request, number), 0, std::as_bytes(std::span(&mark, 1)))
                       ? 1
                       : 0;
        }
        engine_->commit(memory);
        break;
      }
      case 2:
        engine_->begin(memory);
        found = engine_->scan(memory, table_, request.first % rows_, request.count, 0, row_bytes_,
                              engines::ScanMode::kGrained,
                              [](std::uint64_t, std::span<const std::byte>) { return true; });
        engine_->commit(memory);
        break;
      default:
        engine_->checkpoint(memory);
        break;
    }
    return found;
  }

  void recover(SimMemory& memory) override {
    engine_.reset();
    engine_ = engines::engine_named<SimMemory>(options_.engine).restart(memory, options_, place_);
  }

  /// The latest version of a page may be there, or the log.
  [[nodiscard]] bool needs(Medium medium) const override {
    return (medium == Medium::kPmem && pmem_bytes_ > 0) || (medium == Medium::kBlock && block_bytes_ > 0);
  }
  [[nodiscard]] std::uint64_t pmem_bytes() const override { return pmem_bytes_; }
  [[nodiscard]] std::map<std::string, double> facts() const override { return engine_->counters(); }
  [[nodiscard]] bool shared() const override { return shared_; }
  [[nodiscard]] bool shares_lines() const override { return options_.shares_lines(); }

  /// The number that each row begins with, by key.
  [[nodiscard]] std::optional<std::vector<std::uint64_t>> present(SimMemory& memory) override {
    if (const std::string wrong = engine_->check(memory); !wrong.empty())
      throw SimulationError("pmsim bug: " + wrong);
    std::vector<std::uint64_t> marks;
    engine_->begin(memory);
    for (std::uint64_t key = 0; key < rows_; ++key) {
      std::uint64_t mark = 0;
      ensure(engine_->read(memory, table_, key, 0, std::as_writable_bytes(std::span(&mark, 1))),
             "a loaded row is gone");
      marks.push_back(mark);
    }
    engine_->commit(memory);
    return marks;
  }

 private:
  [[nodiscard]] std::uint64_t key(const Request& request, std::uint64_t number) const noexcept {
    return (number == 0 ? request.first : mix64(request.first * 64 + number)) % rows_;
  }

  EngineOptions options_;
  std::uint64_t rows_;
  std::uint32_t row_bytes_;
  bool shared_;
  std::unique_ptr<Engine<SimMemory>> engine_;
  engines::TableId table_ = 0;
  engines::EnginePlace place_;
  std::uint64_t pmem_bytes_ = 0;
  std::uint64_t block_bytes_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::unique_ptr<Part> make_engine(workloads::Parameters& parameters, const PartContext& context) {
  return std::make_unique<EnginePart>(parameters, context);
}

}  // namespace pmsim::system
