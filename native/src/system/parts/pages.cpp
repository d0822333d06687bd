#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "pmsim/blocks/page/technique_store.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/detached.hpp"
#include "pmsim/system/part.hpp"
#include "pmsim/workloads/options/page_flush.hpp"
#include "pmsim/workloads/page_costs.hpp"

namespace pmsim::system {

namespace {

using blocks::page::Frame;
using blocks::page::LineMask;
using blocks::page::PageId;
using blocks::page::StoreOptions;
using blocks::page::Technique;
using blocks::page::TechniqueStore;
using memory::Address;
using memory::kLineBytes;

/// Pages in DRAM whose durable copies lie in the slots of a failure-atomic page store. Every worker has a share
/// of the pages of its own. flush: writes `count` pages of the worker's share back, from its page `first` on,
/// each with `dirty_lines` lines changed since its last flush; DURABLE, page by page, when it has ended.
/// touch: changes them in DRAM only, as a transaction does before somebody flushes them.
///
/// Each flush gives the page its next version; a changed line begins with the version that changed it last, so
/// that present() (the version of each page) can tell a torn page from a whole one.
///
/// checksum: a torn page is repaired from its snapshot. A database renews snapshots rarely, in the background,
/// and repeats its log's changes since; that work is not the flush's, and the log is another part's. Here each
/// flush is followed by the renewal of the page's snapshot, which takes no time, and nothing is to be repeated.
class Pages final : public Part {
 public:
  static constexpr std::uint64_t kTorn = ~std::uint64_t{0};

  Pages(workloads::Parameters& parameters, const PartContext& context)
      : options_(options_of(parameters, context)),
        per_worker_(options_.pages / options_.writers),
        dirty_lines_(static_cast<std::uint32_t>(parameters.number("dirty_lines", 1, options_.lines()))),
        technique_(workloads::read_technique(parameters, kTechniques)),
        store_(context.memory, options_, technique_, workloads::page_costs(context.platform)),
        versions_(options_.pages, 0),
        resident_(options_.pages, true) {
    data_ = context.memory.allocate(memory::Medium::kDram, options_.pages * options_.page_bytes,
                                    {.name = "DRAM pages", .alignment = 1 << 21});
    install(context.memory, Poll(context.watch, Phase::kLoad));
    Random random(context.seed);
    for (LineMask& pattern : patterns_) {
      while (pattern.count() < dirty_lines_)
        pattern.set(static_cast<std::uint32_t>(random.below(options_.lines())));
    }
    all_.set_first(options_.lines());
  }

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {"flush", "touch"}; }

  std::uint64_t execute(memory::SimMemory& memory, std::uint32_t worker, const Request& request) override {
    for (std::uint64_t number = request.first; number != request.first + request.count; ++number) {
      const PageId page = worker * per_worker_ + number % per_worker_;
      if (!resident_[page])
        load(memory, page);
      if (request.kind == 1) {
        change(memory, page, versions_[page] + 1);
        continue;
      }
      // The lines hold what was changed before this flush; their time is not the flush's.
      ++versions_[page];
      {
        const memory::Detached untimed(memory);
        change(memory, page, versions_[page]);
      }
      Frame frame = frame_of(page);
      frame.dirty = patterns_[versions_[page] % kPatterns];
      if (technique_ == Technique::kCowLoad)
        frame.resident = frame.dirty;
      store_.flush(memory, worker, page, frame);
      ++flushed_;
      if (technique_ == Technique::kChecksum) {
        const memory::Detached untimed(memory);
        store_.renew_snapshot(memory, page, frame);
      }
    }
    return request.count;
  }

  void recover(memory::SimMemory& memory) override {
    std::vector<Frame> frames;
    for (PageId page = 0; page < options_.pages; ++page)
      frames.push_back(frame_of(page));
    const bool loaded = store_.recover(memory, frames);
    // A medium that has lost everything: the pages begin anew.
    for (PageId page = 0; page < options_.pages; ++page) {
      if (!store_.payload(page))
        return install(memory);
    }
    // A frame of cow-load needs no more than the lines that will change.
    resident_.assign(options_.pages, loaded || technique_ == Technique::kCowLoad);
    for (PageId page = 0; page < options_.pages; ++page)
      versions_[page] = version_of(memory, page);
    if (technique_ != Technique::kChecksum)
      return;
    // The failure may have torn a snapshot, too; it must be whole when its page is written again.
    memory::Stream* stream = memory.attached();
    memory.detach();
    for (PageId page = 0; page < options_.pages; ++page)
      store_.renew_snapshot(memory, page, frames[page]);
    memory.attach(*stream);
  }

  [[nodiscard]] std::uint64_t pmem_bytes() const override { return store_.pmem_bytes(); }
  [[nodiscard]] std::map<std::string, double> facts() const override {
    return {{"flushed", static_cast<double>(flushed_)}, {"pages", static_cast<double>(options_.pages)}};
  }

  [[nodiscard]] std::optional<std::vector<std::uint64_t>> present(memory::SimMemory& memory) override {
    std::vector<std::uint64_t> versions;
    for (PageId page = 0; page < options_.pages; ++page)
      versions.push_back(version_of(memory, page));
    return versions;
  }

 private:
  static constexpr std::size_t kPatterns = 61;
  /// All that write pages: not the checksum alone, which is the last.
  static constexpr std::size_t kTechniques = blocks::page::kTechniqueNames.size() - 1;

  [[nodiscard]] static StoreOptions options_of(workloads::Parameters& parameters, const PartContext& context) {
    StoreOptions options;
    options.page_bytes = static_cast<std::uint32_t>(parameters.number("page_size", kLineBytes, 65536));
    options.writers = context.workers;
    options.spare_slots = static_cast<std::uint32_t>(parameters.number("spare_slots", 1, 1 << 20));
    const auto pages = static_cast<std::uint64_t>(parameters.number("pages", 1, std::int64_t{1} << 24));
    options.pages = pages / context.workers * context.workers;
    if (options.pages == 0)
      parameters.refuse("pages", "each worker needs at least one");
    if (context.platform.pmem.dimms == 0)
      parameters.refuse("platform", "has no persistent memory");
    options.check();
    return options;
  }

  /// A clean page that lies in DRAM.
  [[nodiscard]] Frame frame_of(PageId page) const {
    return {.data = data_ + page * options_.page_bytes, .dirty = {}, .resident = all_};
  }

  /// Every page gets a slot of zeros, durably.
  void install(memory::SimMemory& memory, Poll poll = {}) {
    store_.install(memory, std::move(poll));
    memory.sfence();
    versions_.assign(options_.pages, 0);
    resident_.assign(options_.pages, true);
  }

  void change(memory::SimMemory& memory, PageId page, std::uint64_t version) {
    patterns_[version % kPatterns].for_each([&](std::uint32_t line) {
      memory.store<std::uint64_t>(data_ + page * options_.page_bytes + line * kLineBytes, version);
    });
  }

  void load(memory::SimMemory& memory, PageId page) {
    std::vector<std::byte> content(options_.page_bytes);
    memory.read(*store_.payload(page), content);
    memory.write(data_ + page * options_.page_bytes, content);
    resident_[page] = true;
  }

  /// Of the durable copy: the highest of its lines, if each line is as that version has it.
  [[nodiscard]] std::uint64_t version_of(memory::SimMemory& memory, PageId page) const {
    const Address payload = *store_.payload(page);
    std::vector<std::uint64_t> lines(options_.lines());
    for (std::uint32_t line = 0; line < options_.lines(); ++line)
      memory.peek(payload + line * kLineBytes, std::as_writable_bytes(std::span(&lines[line], 1)));
    const std::uint64_t version = *std::ranges::max_element(lines);
    for (std::uint32_t line = 0; line < options_.lines(); ++line) {
      std::uint64_t last = version;
      while (last > lines[line] && !patterns_[last % kPatterns].test(line))
        --last;
      if (last != lines[line] || (last != 0 && !patterns_[last % kPatterns].test(line)))
        return kTorn;
    }
    return version;
  }

  StoreOptions options_;
  std::uint64_t per_worker_;
  std::uint32_t dirty_lines_;
  Technique technique_;
  TechniqueStore store_;
  Address data_ = 0;
  std::array<LineMask, kPatterns> patterns_{};
  LineMask all_;
  std::vector<std::uint64_t> versions_;  ///< in DRAM: what is flushed or being flushed
  std::vector<bool> resident_;           ///< its DRAM copy is there
  std::uint64_t flushed_ = 0;
};

}  // namespace

std::unique_ptr<Part> make_pages(workloads::Parameters& parameters, const PartContext& context) {
  return std::make_unique<Pages>(parameters, context);
}

}  // namespace pmsim::system
