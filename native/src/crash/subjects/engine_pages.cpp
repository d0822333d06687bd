#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "page_model.hpp"
#include "pmsim/engines/buffer/buffer_manager.hpp"

// Subjects: the buffer manager below its log. The log is played by this model: a list of redo records, durable
// before anything else of a change, and cut by a checkpoint. So what is checked is the page part alone:
// write-back in place and by micro log, installation of pages on PMem, the journal of the SSD, the map of
// allocated pages, and direct use of PMem.

namespace pmsim::crash {

namespace {

using blocks::page::Write;
using engines::Access;
using engines::EnginePlace;
using engines::kPageHeaderBytes;
using engines::PageId;
using engines::buffer::BufferConfig;
using engines::buffer::BufferManager;
using engines::buffer::FixedPage;
using engines::buffer::FullFrame;
using engines::buffer::Home;
using memory::SimMemory;
using page::Bytes;

constexpr std::uint32_t kPage = 4096;

struct Record {
  enum class Kind : std::uint8_t {
    kOverwrite,
    kMove,
    kAllocate,
    kRelease,
    kTouch,
    kCheckpoint,  ///< all dirty pages
    kTruncation,  ///< those with the oldest changes
  } kind;
  PageId id = 0;
  std::uint32_t to = 0;
  std::uint32_t from = 0;  ///< kMove
  Bytes bytes;             ///< kOverwrite; kMove: their number counts
  std::uint64_t lsn = 0;
};

class FoundPages final : public Recovered {
 public:
  std::unique_ptr<BufferManager<SimMemory>> manager;
  std::vector<Bytes> pages;
  std::string problem;
};

BufferConfig small_config(Home home, bool cache, bool meta_on_ssd, bool direct) {
  BufferConfig config;
  config.home = home;
  config.pmem_cache = cache;
  config.direct = direct;
  config.meta_on_ssd = meta_on_ssd;
  config.page_bytes = kPage;
  config.dram_bytes = 8 * FullFrame{kPage}.bytes();
  config.pmem_bytes = (home == Home::kPmem ? 24 : cache ? 3 : 0) * std::uint64_t{kPage};
  config.ssd_bytes = home == Home::kSsd ? 24 * std::uint64_t{kPage} : 0;
  config.admission_entries = 16;
  config.cache_line_grained = config.mini_pages = config.pointer_swizzling = home == Home::kPmem || cache;
  config.migration = {0.3, 0.2, 0.5, 0.7};
  config.journal_slots = 2;
  return config;
}

class PagesSubject final : public Subject {
 public:
  PagesSubject(std::uint64_t seed, Scale scale, const BufferConfig& config)
      : config_(config), loaded_(scale == Scale::kSmall ? 2 : 4) {
    Random random(seed);
    std::set<PageId> live;
    for (PageId id = 0; id < loaded_; ++id)
      live.insert(id);
    PageId next = loaded_;
    const std::uint32_t operations = scale == Scale::kSmall ? 9 : 80;
    while (program_.size() < operations) {
      const std::uint64_t dice = random.below(100);
      const auto any = [&] {
        // Often one of the loaded pages: those are on PMem from the start.
        auto at = live.begin();
        std::advance(
            at, random.below(random.below(2) == 0 ? std::min<std::size_t>(live.size(), loaded_) : live.size()));
        return *at;
      };
      const auto offset = [&](std::uint32_t bytes) {
        // Often on the first line, where the LSN is.
        const std::uint64_t room = random.below(3) == 0 ? 2 * 64 : kPage;
        return static_cast<std::uint32_t>(kPageHeaderBytes + random.below(room - kPageHeaderBytes - bytes));
      };
      Record step{};
      if (scale == Scale::kLarge && program_.size() < 8) {
        // More pages than DRAM has room for.
        step = {.kind = Record::Kind::kAllocate, .id = next++, .to = 0, .from = 0, .bytes = {}, .lsn = 0};
        live.insert(step.id);
      } else if (dice < (scale == Scale::kSmall ? 35 : 24)) {
        step = {.kind = Record::Kind::kOverwrite,
                .id = any(),
                .to = 0,
                .from = 0,
                .bytes = Bytes(8 + random.below(90)),
                .lsn = 0};
        step.to = offset(static_cast<std::uint32_t>(step.bytes.size()));
        for (std::byte& byte : step.bytes)
          byte = static_cast<std::byte>(program_.size() + 1);
      } else if (dice < (scale == Scale::kSmall ? 60 : 42)) {
        step = {.kind = Record::Kind::kMove,
                .id = any(),
                .to = 0,
                .from = 0,
                .bytes = Bytes(8 + random.below(60)),
                .lsn = 0};
        step.to = offset(static_cast<std::uint32_t>(step.bytes.size()));
        step.from = offset(static_cast<std::uint32_t>(step.bytes.size()));
      } else if (dice < (scale == Scale::kSmall ? 65 : 50) || live.size() < 2) {
        if (live.size() >= 16)
          continue;
        step = {.kind = Record::Kind::kAllocate,
                .id = next++,
                .to = 0,
                .from = 0,
                .bytes = {},
                .lsn = 0};  // the manager chooses; see run()
        live.insert(step.id);
      } else if (dice < (scale == Scale::kSmall ? 68 : 54)) {
        step = {.kind = Record::Kind::kRelease, .id = any(), .to = 0, .from = 0, .bytes = {}, .lsn = 0};
        live.erase(step.id);
      } else if (dice < (scale == Scale::kSmall ? 70 : 88)) {
        step = {.kind = Record::Kind::kTouch, .id = any(), .to = 0, .from = 0, .bytes = {}, .lsn = 0};
      } else {
        step = {.kind = random.below(2) == 0 ? Record::Kind::kCheckpoint : Record::Kind::kTruncation,
                .id = 0,
                .to = 0,
                .from = 0,
                .bytes = {},
                .lsn = 0};
      }
      step.lsn = program_.size() + 1;
      program_.push_back(std::move(step));
    }
  }

  void create(SimMemory& memory) override {
    manager_ = std::make_unique<BufferManager<SimMemory>>(memory, config_);
    place_ = manager_->place();
    manager_->before_write_back([](SimMemory&, std::uint64_t) {});
    for (PageId id = 0; id < loaded_; ++id) {
      Bytes image(kPage);
      for (std::size_t byte = kPageHeaderBytes; byte < kPage; ++byte)
        image[byte] = static_cast<std::byte>(0x80 + id * 16 + byte / 64 % 16);
      manager_->load(memory, image);
      id_of_.push_back(id);
      pages_.push_back(std::move(image));
    }
    manager_->sync(memory);
    created_ = true;
  }

  [[nodiscard]] std::uint32_t operations() const override {
    return static_cast<std::uint32_t>(program_.size());
  }

  void run(SimMemory& memory, std::uint32_t index) override {
    Record step = program_[index];
    if (step.kind == Record::Kind::kCheckpoint) {
      manager_->write_back_all(memory);
      manager_->persist_allocation(memory);
      log_.clear();
      return;
    }
    if (step.kind == Record::Kind::kTruncation) {
      const std::uint64_t middle = log_.empty() ? step.lsn : log_[log_.size() / 2].lsn;
      const std::uint64_t needed = manager_->write_back_before(memory, middle);
      manager_->persist_allocation(memory);
      std::erase_if(log_, [&](const Record& record) { return record.lsn < needed; });
      return;
    }
    if (step.kind == Record::Kind::kAllocate) {
      // As an engine does it: allocated in DRAM, then logged. Pinned until it is.
      FixedPage page = manager_->allocate(memory);
      manager_->pin(memory, page);
      manager_->set_lsn(memory, page, step.lsn);
      id_of_.resize(std::max<std::size_t>(id_of_.size(), step.id + 1));
      id_of_[step.id] = page.id;
      if (pages_.size() <= page.id)
        pages_.resize(page.id + 1);
      pages_[page.id] = Bytes(kPage);
      step.id = page.id;
      log_.push_back(step);
      manager_->unfix(memory, page);
      manager_->unpin_all(memory, step.lsn);
      return;
    }
    step.id = id_of_[step.id];
    if (step.kind == Record::Kind::kTouch) {
      FixedPage page = manager_->fix_page(memory, step.id, Access::kGrained);
      static_cast<void>(manager_->resident(memory, page, 64 * (index % 60), 8));
      manager_->unfix(memory, page);
      return;
    }
    // The log first: from here on the change is to be found, whatever happens to the page.
    log_.push_back(step);
    if (step.kind == Record::Kind::kRelease) {
      pages_[step.id].clear();
      FixedPage page = manager_->fix_page(memory, step.id, Access::kGrained);
      manager_->release(memory, page);
    } else {
      apply(pages_[step.id], step);
      FixedPage page = manager_->fix_page(memory, step.id, Access::kGrained);
      apply(memory, *manager_, page, step);
      manager_->unfix(memory, page);
    }
    manager_->unpin_all(memory, step.lsn);
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(SimMemory& memory) const override {
    auto found = std::make_unique<FoundPages>();
    if (!created_)
      return found;
    found->manager = std::make_unique<BufferManager<SimMemory>>(memory, config_, place_);
    BufferManager<SimMemory>& manager = *found->manager;
    manager.before_write_back([](SimMemory&, std::uint64_t) {});
    manager.recover(memory);
    for (const Record& record : log_) {
      if (record.kind == Record::Kind::kRelease) {
        manager.redo_release(memory, record.id);
        continue;
      }
      if (record.kind == Record::Kind::kAllocate)
        manager.redo_allocate(memory, record.id);
      FixedPage page = manager.fix_page(memory, record.id, Access::kFull);
      if (manager.lsn(memory, page) < record.lsn) {
        if (record.kind == Record::Kind::kAllocate)
          manager.format(memory, page, record.lsn);
        else
          apply(memory, manager, page, record);
      }
      manager.unfix(memory, page);
      manager.unpin_all(memory, record.lsn);
    }
    std::vector<PageId> owned;
    found->pages.resize(pages_.size());
    for (PageId id = 0; id < pages_.size(); ++id) {
      if (pages_[id].empty())
        continue;
      owned.push_back(id);
      FixedPage page = manager.fix_page(memory, id, Access::kFull);
      found->pages[id].resize(kPage);
      memory.read(manager.resident(memory, page, 0, kPage), found->pages[id]);
      std::fill_n(found->pages[id].begin(), kPageHeaderBytes, std::byte{0});
      manager.unfix(memory, page);
    }
    found->problem = manager.check(memory, owned);
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, SimMemory&) const override {
    const auto& found = static_cast<const FoundPages&>(recovered);
    if (!created_)
      return {};
    for (PageId id = 0; id < pages_.size(); ++id) {
      // Not with ==, which goes byte by byte: most of a check's time is here.
      if (pages_[id].empty() || std::memcmp(found.pages[id].data(), pages_[id].data(), kPage) == 0)
        continue;
      const auto byte = std::ranges::mismatch(found.pages[id], pages_[id]).in1 - found.pages[id].begin();
      return "page " + std::to_string(id) + " is wrong from byte " + std::to_string(byte) + " on";
    }
    return found.problem;
  }

  /// Goes on with the manager that recovery has made, and with the log as it was.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<FoundPages&>(recovered);
    std::vector<PageId> live;
    for (PageId id = 0; id < pages_.size(); ++id) {
      if (!pages_[id].empty())
        live.push_back(id);
    }
    if (found.manager == nullptr || live.empty())
      return nullptr;
    auto next = std::make_unique<PagesSubject>(*this);
    next->manager_ = std::move(found.manager);
    next->id_of_.resize(pages_.size());
    for (PageId id = 0; id < pages_.size(); ++id)
      next->id_of_[id] = id;
    Random random(program_.size() + log_.size());
    next->program_.clear();
    for (const auto kind : {Record::Kind::kOverwrite, Record::Kind::kMove, Record::Kind::kTruncation,
                            Record::Kind::kOverwrite, Record::Kind::kCheckpoint}) {
      Record step{
          .kind = kind, .id = live[random.below(live.size())], .to = 0, .from = 0, .bytes = {}, .lsn = 0};
      step.to = static_cast<std::uint32_t>(kPageHeaderBytes + random.below(200));
      step.from = step.to + 40;
      step.bytes = Bytes(60, static_cast<std::byte>(0x70 + next->program_.size()));
      step.lsn = program_.size() + next->program_.size() + 1;
      next->program_.push_back(std::move(step));
    }
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const Record& step = program_[index];
    const std::string name = " page " + std::to_string(step.id);
    switch (step.kind) {
      case Record::Kind::kOverwrite:
        return "overwrite" + name + ": " + std::to_string(step.bytes.size()) + " bytes at " +
               std::to_string(step.to);
      case Record::Kind::kMove:
        return "move" + name + ": " + std::to_string(step.bytes.size()) + " bytes from " +
               std::to_string(step.from) + " to " + std::to_string(step.to);
      case Record::Kind::kAllocate:
        return "allocate" + name;
      case Record::Kind::kRelease:
        return "release" + name;
      case Record::Kind::kTouch:
        return "read" + name;
      case Record::Kind::kTruncation:
        return "checkpoint of the oldest changes";
      default:
        return "checkpoint";
    }
  }
  PagesSubject(const PagesSubject& other)
      : Subject(other),
        config_(other.config_),
        loaded_(other.loaded_),
        program_(other.program_),
        place_(other.place_),
        created_(other.created_),
        pages_(other.pages_),
        log_(other.log_) {}

 private:
  static void apply(Bytes& content, const Record& step) {
    if (step.kind == Record::Kind::kOverwrite)
      std::ranges::copy(step.bytes, content.begin() + step.to);
    else
      std::memmove(content.data() + step.to, content.data() + step.from, step.bytes.size());
  }
  static void apply(SimMemory& memory, BufferManager<SimMemory>& manager, FixedPage& page, const Record& step) {
    if (step.kind == Record::Kind::kOverwrite)
      manager.overwrite(memory, page, step.to, step.bytes, step.lsn);
    else
      manager.move(memory, page, step.to, step.from, static_cast<std::uint32_t>(step.bytes.size()), step.lsn);
  }

  BufferConfig config_;
  PageId loaded_;
  std::vector<Record> program_;
  std::unique_ptr<BufferManager<SimMemory>> manager_;
  EnginePlace place_;
  bool created_ = false;
  std::vector<PageId> id_of_;  ///< program's page -> the manager's
  std::vector<Bytes> pages_;   ///< what each page must contain; empty: not allocated
  std::vector<Record> log_;    ///< what checkpoints have left of it
};

template <Home kHome, bool kCache, bool kMetaOnSsd, bool kDirect, Write kWrite = Write::kStream>
std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) {
  BufferConfig config = small_config(kHome, kCache, kMetaOnSsd, kDirect);
  config.page_write = kWrite;
  return std::make_unique<PagesSubject>(seed, scale, config);
}

constexpr auto kPmemHome = engines::buffer::join(
    engines::buffer::kInPlaceSites, engines::buffer::kMicroLogSites, engines::buffer::kPmemMapSites);
constexpr auto kSsdHome =
    engines::buffer::join(engines::buffer::kSsdJournalSites, engines::buffer::kSsdMapSites);
// The micro log is used here too, but pages on PMem move too seldom for its points to be noticed in few states.
constexpr auto kThreeTiers =
    engines::buffer::join(engines::buffer::kInPlaceSites, engines::buffer::kCacheSites,
                          engines::buffer::kPmemJournalSites, engines::buffer::kPmemMapSites);
constexpr auto kPmemHomeFlushed =
    engines::buffer::join(kPmemHome, engines::buffer::kInPlaceFlushSites, engines::buffer::kMicroLogFlushSites);
constexpr auto kThreeTiersFlushed =
    engines::buffer::join(kThreeTiers, engines::buffer::kInPlaceFlushSites, engines::buffer::kCacheFlushSites);
constexpr auto kDirectUse = engines::buffer::join(engines::buffer::kCacheSites, engines::buffer::kDirectSites);

}  // namespace

extern const SubjectKind kPagesPmemHome;
extern const SubjectKind kPagesSsdHome;
extern const SubjectKind kPagesThreeTiers;
extern const SubjectKind kPagesDirect;
extern const SubjectKind kPagesPmemHomeFlushed;
extern const SubjectKind kPagesThreeTiersFlushed;

const SubjectKind kPagesPmemHome{"pages-pmem-home", "buffer manager over PMem, below its log", kPmemHome,
                                 make<Home::kPmem, false, false, false>};
const SubjectKind kPagesSsdHome{"pages-ssd-home", "buffer manager over an SSD that has the journal too",
                                kSsdHome, make<Home::kSsd, false, true, false>};
const SubjectKind kPagesThreeTiers{"pages-three-tier", "buffer manager over PMem and SSD, below its log",
                                   kThreeTiers, make<Home::kSsd, true, false, false>};
const SubjectKind kPagesPmemHomeFlushed{"pages-pmem-home-clwb", "the same with ordinary stores and clwb",
                                        kPmemHomeFlushed,
                                        make<Home::kPmem, false, false, false, Write::kStoreFlush>};
const SubjectKind kPagesThreeTiersFlushed{"pages-three-tier-clwb", "the same with ordinary stores and clwb",
                                          kThreeTiersFlushed,
                                          make<Home::kSsd, true, false, false, Write::kStoreFlush>};
const SubjectKind kPagesDirect{"pages-direct", "pages changed where they lie on PMem (spitfire)", kDirectUse,
                               make<Home::kSsd, true, false, true>};

}  // namespace pmsim::crash
