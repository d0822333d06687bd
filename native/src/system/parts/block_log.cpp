#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "pmsim/core/crc32c.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/system/part.hpp"

namespace pmsim::system {

namespace {

using memory::Address;
using memory::kSectorBytes;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

/// Transaction logs on a block device, one of each worker's own, written in groups as a page-oriented system
/// does: the entries of a group are put together in DRAM, filled up to whole sectors, written, and the device's
/// volatile cache is flushed. The group is DURABLE when the flush has ended. Requests are those of the log in
/// memory.
///
///     group = { magic ^ key, number of the group since the start, bytes of entries, their CRC-32C } entries
///
/// The groups lie in a ring, each from a sector on. Recovery reads from the sector that the anchor (the ring's
/// first sector, rewritten by truncate) names and ends at the first group whose number or checksum is wrong:
/// sectors are atomic, a group of several may be torn.
class BlockLog final : public Part {
 public:
  BlockLog(workloads::Parameters& parameters, const PartContext& context) {
    const auto entry_size = static_cast<std::size_t>(parameters.number("entry_size", 8, 1 << 20));
    const auto log_size = static_cast<std::uint64_t>(parameters.number("log_size", 4096, kMaxBytes));
    largest_group_ = static_cast<std::uint64_t>(parameters.number("largest_group", 1, 1 << 16));
    if (entry_size % 8 != 0)
      parameters.refuse("entry_size", "must be a multiple of 8 bytes");
    if (context.platform.block.capacity == 0)
      parameters.refuse("platform", "has no block device (block.capacity = 0); choose one with it");
    if (log_size % kSectorBytes != 0)
      parameters.refuse("log_size", "must be a multiple of 512 bytes");
    sectors_ = log_size / kSectorBytes - 1;
    buffer_bytes_ = sectors_of(largest_group_ * entry_size) * kSectorBytes;
    if (sectors_of(largest_group_ * entry_size) > sectors_)
      parameters.refuse("log_size", "too small for largest_group entries");
    Random random(mix64(context.seed));
    payload_.resize(entry_size);
    for (std::size_t at = 0; at < entry_size; at += 8) {
      const std::uint64_t word = random.next();
      std::memcpy(payload_.data() + at, &word, sizeof word);
    }
    key_ = random.next();
    for (std::uint32_t worker = 0; worker < context.workers; ++worker) {
      Writer writer;
      writer.base = context.memory.allocate(memory::Medium::kBlock, log_size, {.name = "log"});
      writer.buffer = context.memory.allocate(memory::Medium::kDram, buffer_bytes_, {.name = "log buffer"});
      write_anchor(context.memory, writer);
      writers_.push_back(writer);
    }
  }

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {"append", "truncate"}; }

  std::uint64_t execute(memory::SimMemory& memory, std::uint32_t worker, const Request& request) override {
    Writer& writer = writers_[worker];
    if (request.kind == 1) {
      truncate(memory, writer);
      return 0;
    }
    if (request.count > largest_group_)
      throw ConfigError("block-log.append: a group of " + std::to_string(request.count) +
                        " entries; largest_group is " + std::to_string(largest_group_));
    const std::uint64_t bytes = request.count * payload_.size();
    const std::uint64_t sectors = sectors_of(bytes);
    // A group is one write: it does not wrap around. What is left of the ring's end is skipped.
    const std::uint64_t place = writer.tail % sectors_;
    const std::uint64_t skipped = place + sectors > sectors_ ? sectors_ - place : 0;
    if (writer.tail + skipped + sectors - writer.head > sectors_)
      truncate(memory, writer);
    writer.tail += writer.tail % sectors_ + sectors > sectors_ ? sectors_ - writer.tail % sectors_ : 0;
    Address to = writer.buffer + sizeof(Header);
    std::uint32_t checksum = 0;
    for (std::uint64_t entry = request.first; entry != request.first + request.count; ++entry) {
      std::memcpy(payload_.data(), &entry, sizeof entry);
      memory.write(to, payload_);
      checksum = crc32c_fast(payload_, checksum);
      to += payload_.size();
    }
    memory.compute(0, static_cast<std::uint32_t>(bytes / 8 * kInstructionsPerWord));
    const Header header{key_, writer.next, bytes, checksum};
    memory.write(writer.buffer, std::as_bytes(std::span(&header, 1)));
    memory.block_write(sector(writer, writer.tail), writer.buffer, sectors * kSectorBytes);
    memory.block_flush();
    writer.tail += sectors;
    ++writer.next;
    entries_ += request.count;
    return request.count;
  }

  void recover(memory::SimMemory& memory) override {
    for (Writer& writer : writers_) {
      std::array<std::uint64_t, 2> anchor{};
      memory.block_read(writer.base, writer.buffer, kSectorBytes);
      memory.read(writer.buffer, std::as_writable_bytes(std::span(anchor)));
      writer.head = writer.tail = anchor[0];
      writer.next = anchor[1];
      visit(memory, writer, [](std::span<const std::byte>) {});
    }
  }

  [[nodiscard]] std::map<std::string, double> facts() const override {
    return {{"entries", static_cast<double>(entries_)}, {"truncations", static_cast<double>(truncations_)}};
  }

  [[nodiscard]] std::optional<std::vector<std::uint64_t>> present(memory::SimMemory& memory) override {
    std::vector<std::uint64_t> numbers;
    for (const Writer& kept : writers_) {
      Writer writer = kept;
      std::array<std::uint64_t, 2> anchor{};
      memory.peek(writer.base, std::as_writable_bytes(std::span(anchor)));
      writer.tail = anchor[0];
      writer.next = anchor[1];
      visit(memory, writer, [&](std::span<const std::byte> payload) {
        std::uint64_t number = 0;
        std::memcpy(&number, payload.data(), sizeof number);
        numbers.push_back(number);
      });
    }
    std::ranges::sort(numbers);
    return numbers;
  }

 private:
  /// CRC-32C of a word by the instruction, and the loop around it.
  static constexpr std::uint32_t kInstructionsPerWord = 4;

  struct Header {
    std::uint64_t key;
    std::uint64_t number;
    std::uint64_t bytes;
    std::uint64_t checksum;
  };
  struct Writer {
    Address base = 0;
    Address buffer = 0;
    std::uint64_t head = 0;  ///< sectors since the start; the anchor says it durably
    std::uint64_t tail = 0;
    std::uint64_t next = 0;  ///< number of the next group
  };

  [[nodiscard]] static std::uint64_t sectors_of(std::uint64_t bytes) noexcept {
    return (sizeof(Header) + bytes + kSectorBytes - 1) / kSectorBytes;
  }
  [[nodiscard]] Address sector(const Writer& writer, std::uint64_t number) const noexcept {
    return writer.base + (1 + number % sectors_) * kSectorBytes;
  }

  void write_anchor(memory::SimMemory& memory, const Writer& writer) const {
    const std::array<std::uint64_t, 2> anchor{writer.head, writer.next};
    memory.write(writer.buffer, std::as_bytes(std::span(anchor)));
    memory.block_write(writer.base, writer.buffer, kSectorBytes);
    memory.block_flush();
  }
  void truncate(memory::SimMemory& memory, Writer& writer) {
    writer.head = writer.tail;
    write_anchor(memory, writer);
    ++truncations_;
  }

  /// Reads the group at `tail` if it is whole.
  bool read_group(memory::SimMemory& memory, const Writer& writer, std::uint64_t tail, Header& header,
                  std::vector<std::byte>& group) const {
    const std::uint64_t room = sectors_ - tail % sectors_;
    memory.block_read(sector(writer, tail), writer.buffer, kSectorBytes);
    memory.read(writer.buffer, std::as_writable_bytes(std::span(&header, 1)));
    const std::uint64_t sectors = sectors_of(header.bytes);
    if (header.key != key_ || header.number != writer.next || sectors > room ||
        sectors * kSectorBytes > buffer_bytes_ || header.bytes % payload_.size() != 0)
      return false;
    memory.block_read(sector(writer, tail), writer.buffer, sectors * kSectorBytes);
    group.resize(header.bytes);
    memory.read(writer.buffer + sizeof(Header), group);
    memory.compute(0, static_cast<std::uint32_t>(header.bytes / 8 * kInstructionsPerWord));
    return crc32c_fast(group) == header.checksum;
  }

  /// Walks over whole groups from `tail` and `next` on, and moves both behind them.
  template <typename Visit>
  void visit(memory::SimMemory& memory, Writer& writer, Visit&& visit) const {
    Header header{};
    std::vector<std::byte> group;
    for (;;) {
      std::uint64_t at = writer.tail;
      if (!read_group(memory, writer, at, header, group)) {
        // It may have been too long for the end of the ring.
        at += sectors_ - at % sectors_;
        if (at % sectors_ == writer.tail % sectors_ || !read_group(memory, writer, at, header, group))
          return;
      }
      for (std::size_t done = 0; done < group.size(); done += payload_.size())
        visit(std::span(group).subspan(done, payload_.size()));
      writer.tail = at + sectors_of(header.bytes);
      ++writer.next;
    }
  }

  std::uint64_t key_ = 0;
  std::vector<std::byte> payload_;
  std::uint64_t largest_group_ = 1;
  std::uint64_t sectors_ = 0;  ///< of the ring
  std::uint64_t buffer_bytes_ = 0;
  std::vector<Writer> writers_;
  std::uint64_t entries_ = 0;
  std::uint64_t truncations_ = 0;
};

}  // namespace

std::unique_ptr<Part> make_block_log(workloads::Parameters& parameters, const PartContext& context) {
  return std::make_unique<BlockLog>(parameters, context);
}

}  // namespace pmsim::system
