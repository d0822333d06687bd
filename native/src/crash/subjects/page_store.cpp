#include <memory>
#include <optional>
#include <string>

#include "page_model.hpp"
#include "pmsim/blocks/page/hybrid.hpp"

// Subjects: the failure-atomic page stores with version numbers (copy on write, micro log, hybrid).

namespace pmsim::crash {

namespace {

using blocks::page::Choice;
using blocks::page::Cow;
using blocks::page::MicroLogs;
using blocks::page::PageStore;
using blocks::page::StoreOptions;
using blocks::page::Write;
using page::Frame;
using page::LineMask;
using page::PageId;
using page::PageModel;
using page::RecoveredPages;
using page::RecoveredStore;
using page::Shape;
using page::shape_of;

/// How the subject uses the store.
struct Mode {
  Choice choice = Choice::kCow;
  Write write = Write::kStream;
  bool load_clean = false;  ///< the frame holds the dirty lines only
};

/// Few lines are cheap in the micro log, and a page of copy on write costs as much as half its lines.
blocks::page::CostModel small_costs() { return {.stream_line = 100}; }

class PageStoreSubject final : public Subject {
 public:
  PageStoreSubject(std::uint64_t seed, const Shape& shape, const Mode& mode)
      : shape_(shape), mode_(mode), model_(shape.pages, shape.page_bytes) {
    Random random(seed);
    for (std::uint32_t index = 0; index < shape.operations; ++index) {
      // The first page several times, so that its version runs ahead of the others' (Fig. 6: a stale slot of B
      // is given to A); every page is written as a whole first.
      const PageId page = index < 2 ? 0 : index == 2 ? 1 : random.below(index < 5 ? 2 : shape.pages);
      operations_.push_back(flush_of(page, random));
    }
    after_recovery_ = random.next();
  }

  void create(memory::SimMemory& memory) override {
    const StoreOptions options{.page_bytes = shape_.page_bytes,
                               .pages = shape_.pages,
                               .writers = shape_.writers,
                               .spare_slots = 1,
                               .write = mode_.write};
    frame_ = memory.allocate(memory::Medium::kDram, shape_.page_bytes);
    store_.emplace(memory, options, mode_.choice, small_costs());
  }

  [[nodiscard]] std::uint32_t operations() const override {
    return static_cast<std::uint32_t>(operations_.size());
  }

  void run(memory::SimMemory& memory, std::uint32_t index) override {
    const Operation& operation = operations_[index];
    const LineMask lines = lines_of(operation);
    model_.change(operation.page, lines, stamps_before_ + index + 1);
    memory.write(frame_, model_.content(operation.page));
    Frame frame{.data = frame_, .dirty = lines, .resident = lines};
    if (!mode_.load_clean)
      frame.resident.set_first(shape_.page_bytes / blocks::page::kLineBytes);
    model_.begin(operation.page);
    store_->flush(memory, operation.writer, operation.page, frame);
    model_.acknowledge();
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(memory::SimMemory& memory) const override {
    auto found = std::make_unique<RecoveredStore<PageStore>>(*store_);
    PageStore& store = found->store;
    store.recover(memory);
    found->pages.resize(shape_.pages);
    for (PageId page = 0; page < shape_.pages; ++page) {
      const auto slot = store.slots().at(page).slot;
      if (slot != blocks::page::kNoSlot)
        take_page(memory, store.slots().area(), slot, page, *found);
    }
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, memory::SimMemory&) const override {
    return model_.check(static_cast<const RecoveredPages&>(recovered));
  }

  /// Goes on with a few flushes; pages that recovery has not found are written as a whole first.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<RecoveredStore<PageStore>&>(recovered);
    auto next = std::make_unique<PageStoreSubject>(*this);
    next->store_ = std::move(found.store);
    next->model_.begin_with(found.pages);
    next->stamps_before_ = operations();
    next->operations_.clear();
    Random random(after_recovery_);
    for (std::uint32_t flush = 0; flush < page::kFlushesAfterRecovery; ++flush)
      next->operations_.push_back(flush_of(random.below(shape_.pages), random));
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const Operation& operation = operations_[index];
    std::string text = "writer " + std::to_string(operation.writer) + " flushes page " +
                       std::to_string(operation.page) + ", dirty lines";
    lines_of(operation).for_each([&](std::uint32_t line) { text += " " + std::to_string(line); });
    return text;
  }

 private:
  struct Operation {
    PageId page = 0;
    std::uint32_t writer = 0;
    LineMask lines;
  };

  [[nodiscard]] Operation flush_of(PageId page, Random& random) const {
    const std::uint32_t lines = shape_.page_bytes / blocks::page::kLineBytes;
    Operation operation{page, static_cast<std::uint32_t>(random.below(shape_.writers)), {}};
    operation.lines.set(static_cast<std::uint32_t>(random.below(lines)));
    if (random.below(3) == 0)
      operation.lines.set(static_cast<std::uint32_t>(random.below(lines)));
    return operation;
  }

  /// A page that has not been written before is dirty as a whole.
  [[nodiscard]] LineMask lines_of(const Operation& operation) const {
    LineMask lines = operation.lines;
    if (!model_.exists(operation.page))
      lines.set_first(shape_.page_bytes / blocks::page::kLineBytes);
    return lines;
  }

  Shape shape_;
  Mode mode_;
  PageModel model_;
  std::vector<Operation> operations_;
  std::uint64_t after_recovery_ = 0;  ///< seed of the flushes after a recovery
  std::uint32_t stamps_before_ = 0;   ///< of the program that has crashed
  memory::Address frame_ = 0;
  std::optional<PageStore> store_;
};

template <Choice kChoice, Write kWrite, bool kLoadClean, std::uint32_t kSmallBytes, std::uint32_t kSmallWriters>
std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) {
  return std::make_unique<PageStoreSubject>(seed, shape_of(scale, kSmallBytes, kSmallWriters),
                                            Mode{.choice = kChoice, .write = kWrite, .load_clean = kLoadClean});
}

template <std::size_t kFirst, std::size_t kSecond>
constexpr std::array<blocks::SiteInfo, kFirst + kSecond> joined(
    const std::array<blocks::SiteInfo, kFirst>& first, const std::array<blocks::SiteInfo, kSecond>& second) {
  std::array<blocks::SiteInfo, kFirst + kSecond> all{};
  std::ranges::copy(first, all.begin());
  std::ranges::copy(second, all.begin() + kFirst);
  return all;
}

/// Where every page stays in the slot that its first flush took.
template <std::size_t kCount>
constexpr std::array<blocks::SiteInfo, kCount> without_stale_slots(std::array<blocks::SiteInfo, kCount> sites) {
  for (blocks::SiteInfo& site : sites) {
    if (site.id == Cow::kPidBeforePvn)
      site.redundant = "pages never move here, so no free slot names a page; see page-cow";
  }
  return sites;
}

constexpr auto kBothSites = joined(Cow::kSites, MicroLogs::kSites);
constexpr auto kBothStoreSites = joined(Cow::kStoreSites, MicroLogs::kStoreSites);

constexpr auto kMicroLogSites = without_stale_slots(kBothSites);
constexpr auto kMicroLogStoreSites = without_stale_slots(kBothStoreSites);

}  // namespace

extern const SubjectKind kPageCow;
extern const SubjectKind kPageCowClwb;
extern const SubjectKind kPageCowLoad;
extern const SubjectKind kPageMicroLog;
extern const SubjectKind kPageMicroLogClwb;
extern const SubjectKind kPageHybrid;

const SubjectKind kPageCow{"page-cow", "page propagation by copy on write with version numbers", Cow::kSites,
                           make<Choice::kCow, Write::kStream, false, 64, 1>};
const SubjectKind kPageCowClwb{"page-cow-clwb", "copy on write with stores and clwb", Cow::kStoreSites,
                               make<Choice::kCow, Write::kStoreFlush, false, 128, 1>};
const SubjectKind kPageCowLoad{"page-cow-load", "copy on write, clean lines loaded from the old slot",
                               Cow::kSites, make<Choice::kCow, Write::kStream, true, 128, 1>};
const SubjectKind kPageMicroLog{"page-microlog", "page propagation in place through a micro log",
                                kMicroLogSites, make<Choice::kMicroLog, Write::kStream, false, 128, 2>};
const SubjectKind kPageMicroLogClwb{"page-microlog-clwb", "micro log with stores and clwb", kMicroLogStoreSites,
                                    make<Choice::kMicroLog, Write::kStoreFlush, false, 128, 2>};
const SubjectKind kPageHybrid{"page-hybrid", "copy on write or micro log, page by page, by cost", kBothSites,
                              make<Choice::kByCost, Write::kStream, false, 256, 2>};

}  // namespace pmsim::crash
