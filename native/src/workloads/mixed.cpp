#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/workloads/access.hpp"
#include "pmsim/workloads/registry.hpp"
#include "pmsim/workloads/tlb_warmup.hpp"

namespace pmsim::workloads {

namespace {

using memory::kLineBytes;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 43;
constexpr std::uint64_t kPageBytes = 16'384;  ///< pages of the building-blocks paper, section 3.2
constexpr std::uint64_t kHeaderBytes = 256;   ///< a page's header has a block of its own, as in blocks/page
/// DRAM that each log writer and page writer reads from, in a circle: more than its share of any cache.
constexpr std::uint64_t kSourceBytes = 64 << 20;
/// An estimate: a random number (xorshift), and a remainder by a 64-bit division, which is microcode of some 35
/// micro-operations on these cores.
constexpr std::uint32_t kLookupInstructions = 48;
constexpr std::int64_t kScannedLines = 4;                         ///< of an operation
constexpr std::int64_t kLinesPerPiece = 16;                       ///< most of an operation on a longer chunk
constexpr std::uint32_t kCountInstructions = 4 * kLineBytes / 8;  ///< counting a line's bits, as in blocks/log

/// What a group's threads do. The tasks of the building-blocks paper, section 2.4, as its authors' published
/// program runs them (github.com/alexandervanrenen/pmembench, interference/): table scans, index lookups that
/// do not depend on each other, log writing (PopLog, padded, stored and flushed) and page propagation (copy on
/// write, streamed), the last two from DRAM. And plain reads and streaming writes: at random without fences
/// (read, write), and with a fence after each access in sequence (append) or at random (overwrite).
enum class Task : std::uint8_t { kScan, kLookup, kLog, kPage, kRead, kWrite, kAppend, kOverwrite };

struct Group {
  Task task{};
  memory::Address base = 0;
  memory::Address sources = 0;
  std::uint64_t part_bytes = 0;  ///< of each thread
  std::uint64_t access_bytes = 0;
  std::uint64_t slot_bytes = 0;  ///< from one place for an access to the next
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char character : text) {
    if (character == separator) {
      parts.emplace_back();
    } else {
      parts.back() += character;
    }
  }
  return parts;
}

class Mixed final : public Workload {
 public:
  Mixed(Parameters& parameters, const machine::PlatformParams& platform, std::uint64_t seed)
      : memory_(capacities_of(platform)), tlb_warmup_(seed) {
    const auto region_bytes = static_cast<std::uint64_t>(parameters.number("region_size", 1 << 20, kMaxBytes));
    for (const std::string& text : split(parameters.text("groups"), ';')) {
      add_group(split(text, ':'), region_bytes, parameters, seed);
    }
    for (std::uint32_t thread = 0; thread < threads_.size(); ++thread) {
      const Group& group = groups_[threads_[thread].group];
      if (is_random(group))
        tlb_warmup_.add(platform, thread, threads_[thread].base, group.part_bytes);
    }
    const auto threads = static_cast<std::int64_t>(threads_.size());
    const std::int64_t warmup =
        std::max({2'500 * threads, walks(platform, region_bytes), fills(platform, region_bytes)});
    // What fills caches is timed: groups of unlike speed share them.
    length_ = machine::RunLength::in_order(tlb_warmup_.operations(), warmup, 8'000 * threads);
  }

  [[nodiscard]] std::uint32_t threads() const override { return static_cast<std::uint32_t>(threads_.size()); }
  [[nodiscard]] machine::RunLength usual_length() const override { return length_; }
  [[nodiscard]] std::vector<std::uint32_t> groups() const override {
    std::vector<std::uint32_t> groups;
    for (const Thread& thread : threads_) {
      groups.push_back(thread.group);
    }
    return groups;
  }
  [[nodiscard]] std::uint64_t pmem_footprint() const override { return memory_.regions().pmem_footprint(); }

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    if (tlb_warmup_.refill(memory_, thread, stream))
      return;
    memory_.attach(stream, thread);
    Thread& state = threads_[thread];
    const Group& group = groups_[state.group];
    switch (group.task) {
      case Task::kScan:
        piece(state, group, stream, Access::kLoad, kScannedLines * kLineBytes);
        break;
      case Task::kLookup:
        memory_.compute(0, kLookupInstructions);
        touch_line(memory_, random_place(state, group), Access::kLoad);
        end(stream, kLineBytes);
        break;
      case Task::kLog:
        append_entry(state, group);
        end(stream, group.access_bytes);
        break;
      case Task::kAppend:
        piece(state, group, stream, Access::kStream, group.access_bytes);
        memory_.sfence();
        break;
      case Task::kPage:
      case Task::kRead:
      case Task::kWrite:
      case Task::kOverwrite:
        chunk(state, group, stream);
        break;
    }
  }

 private:
  struct Thread {
    std::uint32_t group;
    Random random;
    memory::Address base;
    memory::Address source_base;
    std::uint64_t position = 0;
    std::uint64_t remaining = 0;
    std::uint64_t source = 0;
  };

  static void end(memory::Stream& stream, std::uint64_t bytes) {
    stream.push(memory::OpKind::kOperationEnd, 0, static_cast<std::uint32_t>(bytes));
  }

  /// The next `bytes` of a sequential walk through the thread's part.
  void piece(Thread& state, const Group& group, memory::Stream& stream, Access access, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes; done += kLineBytes) {
      touch_line(memory_, state.base + state.position, access);
      state.position = state.position + kLineBytes >= group.part_bytes ? 0 : state.position + kLineBytes;
    }
    end(stream, bytes);
  }

  /// At random places, each with a translation of its own; a chunk of a page has one for many lines.
  [[nodiscard]] static bool is_random(const Group& group) {
    return (group.task == Task::kLookup || group.task == Task::kRead || group.task == Task::kWrite ||
            group.task == Task::kOverwrite) &&
           group.access_bytes < 4096;
  }

  /// Operations until the page tables that accesses at random places walk through are warm.
  [[nodiscard]] std::int64_t walks(const machine::PlatformParams& platform, std::uint64_t region_bytes) const {
    std::int64_t operations = 0;
    for (const Group& group : groups_) {
      if (is_random(group)) {
        operations =
            std::max(operations, accesses_to_warm_page_tables(platform, memory::medium_of(group.base),
                                                              region_bytes, cached_lines(platform, threads())));
      }
    }
    return operations;
  }

  /// Operations until the caches hold as much of a region that is read, or logged to, as in a long run. Threads
  /// of all groups are taken for equally fast.
  [[nodiscard]] std::int64_t fills(const machine::PlatformParams& platform, std::uint64_t region_bytes) const {
    std::int64_t operations = 0;
    for (const Group& group : groups_) {
      const bool random = group.task == Task::kLookup || group.task == Task::kRead;
      const auto of_group = static_cast<std::int64_t>(region_bytes / group.part_bytes);
      if (group.task == Task::kLog) {
        const std::int64_t stores = stores_to_fill_caches(platform, static_cast<std::uint32_t>(of_group), true);
        const std::int64_t appends = stores / static_cast<std::int64_t>(group.access_bytes / kLineBytes);
        operations = std::max(operations, appends * threads() / of_group);
      }
      if (!random && group.task != Task::kScan)
        continue;
      const auto region_lines = static_cast<std::int64_t>(region_bytes / kLineBytes);
      const std::int64_t loads =
          loads_to_fill_caches(platform, static_cast<std::uint32_t>(of_group), region_lines, random);
      const std::int64_t lines =
          group.task == Task::kScan ? kScannedLines
          : group.task == Task::kLookup
              ? 1
              : std::min(kLinesPerPiece, static_cast<std::int64_t>(group.access_bytes / kLineBytes));
      operations = std::max(operations, loads / lines * threads() / of_group);
    }
    return operations;
  }

  [[nodiscard]] static memory::Address random_place(Thread& state, const Group& group) {
    return state.base + state.random.below(group.part_bytes / group.slot_bytes) * group.slot_bytes;
  }

  /// Loads the next line of what is to be written.
  void load_source(Thread& state) {
    touch_line(memory_, state.source_base + state.source, Access::kLoad);
    state.source = (state.source + kLineBytes) % kSourceBytes;
  }

  /// One entry of a padded PopLog: the first line has the number of set bits, so it is flushed last.
  void append_entry(Thread& state, const Group& group) {
    const memory::Address entry = state.base + state.position;
    for (std::uint64_t done = 0; done < group.access_bytes; done += kLineBytes) {
      load_source(state);
      memory_.compute(0, kCountInstructions);
      touch_line(memory_, entry + done, done == 0 ? Access::kStore : Access::kStoreClwb);
    }
    touch_line(memory_, entry, Access::kStoreClwb);
    memory_.sfence();
    const std::uint64_t next = state.position + group.access_bytes;
    state.position = next + group.access_bytes > group.part_bytes ? 0 : next;
  }

  /// Pages in two barriers with page version numbers: the contents, then the header.
  void complete_page(const Thread& state, const Group& group) {
    memory_.sfence();
    const memory::Address header = state.base + state.position - group.slot_bytes;
    touch_line(memory_, header, Access::kStore);
    memory_.sfence();  // orders page id and version
    touch_line(memory_, header, Access::kStoreClwb);
    memory_.sfence();
  }

  /// The next part of a chunk at a random place.
  void chunk(Thread& state, const Group& group, memory::Stream& stream) {
    if (state.remaining == 0) {
      state.position = random_place(state, group) - state.base + (group.slot_bytes - group.access_bytes);
      state.remaining = group.access_bytes;
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(state.remaining, kLinesPerPiece * kLineBytes);
    for (std::uint64_t done = 0; done < bytes; done += kLineBytes) {
      if (group.task == Task::kPage) {
        load_source(state);
      }
      touch_line(memory_, state.base + state.position + done,
                 group.task == Task::kRead ? Access::kLoad : Access::kStream);
    }
    state.position += bytes;
    state.remaining -= bytes;
    if (state.remaining == 0 && group.task == Task::kPage) {
      complete_page(state, group);
    } else if (state.remaining == 0 && group.task == Task::kOverwrite) {
      memory_.sfence();
    }
    end(stream, bytes);
  }

  void add_group(const std::vector<std::string>& parts, std::uint64_t region_bytes, Parameters& parameters,
                 std::uint64_t seed) {
    if (parts.size() != 3 && parts.size() != 4) {
      parameters.refuse("groups", "each group is task:memory:threads[:access_size], groups separated by ';'");
    }
    Group group;
    std::uint64_t default_bytes = kLineBytes;
    if (parts[0] == "scan") {
      group.task = Task::kScan;
    } else if (parts[0] == "lookup") {
      group.task = Task::kLookup;
    } else if (parts[0] == "log") {
      group.task = Task::kLog;
      default_bytes = 2 * kLineBytes;  // entries of 104 bytes and their header
    } else if (parts[0] == "page") {
      group.task = Task::kPage;
      default_bytes = kPageBytes;
    } else if (parts[0] == "read") {
      group.task = Task::kRead;
      default_bytes = 256;
    } else if (parts[0] == "write") {
      group.task = Task::kWrite;
      default_bytes = 256;
    } else if (parts[0] == "append") {
      group.task = Task::kAppend;
    } else if (parts[0] == "overwrite") {
      group.task = Task::kOverwrite;
      default_bytes = 256;
    } else {
      parameters.refuse("groups", "task \"" + parts[0] +
                                      "\" is unknown; choose one of scan, lookup, log, page, read, write, "
                                      "append, overwrite");
    }
    if (parts[1] != "dram" && parts[1] != "pmem") {
      parameters.refuse("groups", "memory \"" + parts[1] + "\" is unknown; choose one of dram, pmem");
    }
    const std::uint64_t threads = positive(parts[2], "threads", 1024, parameters);
    group.access_bytes =
        parts.size() == 4 ? positive(parts[3], "access_size", 1 << 24, parameters) : default_bytes;
    if (group.access_bytes % kLineBytes != 0) {
      parameters.refuse("groups", "access_size must be a multiple of 64 bytes");
    }
    const bool pmem = parts[1] == "pmem";
    group.base = memory_.allocate(pmem ? memory::Medium::kPmem : memory::Medium::kDram, region_bytes,
                                  {.name = parts[0], .alignment = 1 << 21, .backing = memory::Backing::kNone});
    group.slot_bytes = group.access_bytes + (group.task == Task::kPage ? kHeaderBytes : 0);
    group.part_bytes = region_bytes / threads / group.slot_bytes * group.slot_bytes;
    if (group.task == Task::kLog || group.task == Task::kPage) {
      group.sources =
          memory_.allocate(memory::Medium::kDram, threads * kSourceBytes,
                           {.name = "sources", .alignment = 1 << 21, .backing = memory::Backing::kNone});
    }
    if (group.part_bytes < group.slot_bytes) {
      parameters.refuse("region_size", "too small: each thread needs room for one access of its own");
    }
    for (std::uint64_t thread = 0; thread < threads; ++thread) {
      Thread state{.group = static_cast<std::uint32_t>(groups_.size()),
                   .random = Random(mix64(seed) + threads_.size()),
                   .base = group.base + thread * group.part_bytes,
                   .source_base = group.sources + thread * kSourceBytes};
      state.position = state.random.below(group.part_bytes / group.slot_bytes) * group.slot_bytes;
      threads_.push_back(state);
    }
    groups_.push_back(group);
  }

  static std::uint64_t positive(const std::string& text, std::string_view name, std::uint64_t maximum,
                                const Parameters& parameters) {
    const bool digits =
        !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos;
    const std::uint64_t value = digits ? std::stoull(text) : 0;
    if (value == 0 || value > maximum) {
      parameters.refuse("groups", std::string(name) + " \"" + text + "\" must be a whole number from 1 to " +
                                      std::to_string(maximum));
    }
    return value;
  }

  memory::SimMemory memory_;
  std::vector<Group> groups_;
  std::vector<Thread> threads_;
  TlbWarmup tlb_warmup_;
  machine::RunLength length_;
};

}  // namespace

std::unique_ptr<Workload> make_mixed(Parameters& parameters, const machine::PlatformParams& platform,
                                     std::uint64_t seed) {
  return std::make_unique<Mixed>(parameters, platform, seed);
}

}  // namespace pmsim::workloads
