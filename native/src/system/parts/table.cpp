#include <array>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/system/part.hpp"

namespace pmsim::system {

namespace {

using memory::Address;
using memory::kLineBytes;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;

/// Rows in an array behind a hash directory in DRAM: one dependent load finds the row's place, one dependent
/// load its first line. lookup: reads row `first`. scan: reads `count` rows in order of their places. Contents
/// do not matter. For tenants that read; it survives no crash, because nothing is written.
class Table final : public Part {
 public:
  Table(workloads::Parameters& parameters, const PartContext& context) {
    row_bytes_ = static_cast<std::uint64_t>(parameters.number("row_size", kLineBytes, 1 << 16));
    rows_ = static_cast<std::uint64_t>(parameters.number("rows", 1, kMaxBytes));
    if (row_bytes_ % kLineBytes != 0)
      parameters.refuse("row_size", "must be a multiple of 64 bytes");
    pmem_ = parameters.choice("memory", {"dram", "pmem"}) == "pmem";
    if (pmem_ && context.platform.pmem.dimms == 0)
      parameters.refuse("memory", "the platform has no persistent memory; choose dram");
    data_ = context.memory.allocate(pmem_ ? memory::Medium::kPmem : memory::Medium::kDram, rows_ * row_bytes_,
                                    {.name = "rows", .alignment = 1 << 21, .backing = memory::Backing::kNone});
    shares_lines_ = context.workers > 1;
    directory_ =
        context.memory.allocate(memory::Medium::kDram, rows_ * sizeof(std::uint64_t),
                                {.name = "directory", .alignment = 1 << 21, .backing = memory::Backing::kNone});
  }

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {"lookup", "scan"}; }

  std::uint64_t execute(memory::SimMemory& memory, std::uint32_t, const Request& request) override {
    if (request.kind == 0) {
      const std::uint64_t row = request.first % rows_;
      memory.compute(0, kLookupInstructions);
      static_cast<void>(memory.load_dependent<std::uint64_t>(directory_ + mix64(row) % rows_ * 8));
      read(memory, row, true);
      return 1;
    }
    for (std::uint64_t number = 0; number < request.count; ++number) {
      memory.compute(0, kRowInstructions);
      read(memory, (request.first + number) % rows_, false);
    }
    return request.count;
  }

  void recover(memory::SimMemory&) override {}
  [[nodiscard]] std::uint64_t pmem_bytes() const override { return pmem_ ? rows_ * row_bytes_ : 0; }
  [[nodiscard]] bool shares_lines() const override { return shares_lines_; }

 private:
  static constexpr std::uint32_t kLookupInstructions = 20;  ///< hash of an 8-byte key, mask, compare
  static constexpr std::uint32_t kRowInstructions = 8;      ///< of a scan's loop: predicate, addition, branch

  void read(memory::SimMemory& memory, std::uint64_t row, bool dependent) {
    const Address address = data_ + row * row_bytes_;
    std::array<std::byte, kLineBytes> line;
    for (std::uint64_t done = 0; done < row_bytes_; done += kLineBytes) {
      if (dependent && done == 0) {
        line = memory.load_dependent<std::array<std::byte, kLineBytes>>(address);
      } else {
        memory.read(address + done, line);
      }
    }
  }

  std::uint64_t rows_ = 0;
  std::uint64_t row_bytes_ = 0;
  bool pmem_ = false;
  bool shares_lines_ = false;  ///< all workers read the same rows, however large the table: some are popular
  Address data_ = 0;
  Address directory_ = 0;
};

}  // namespace

std::unique_ptr<Part> make_table(workloads::Parameters& parameters, const PartContext& context) {
  return std::make_unique<Table>(parameters, context);
}

}  // namespace pmsim::system
