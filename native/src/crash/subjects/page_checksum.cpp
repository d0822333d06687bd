#include <memory>
#include <optional>
#include <string>

#include "page_model.hpp"
#include "pmsim/blocks/page/checksum.hpp"

namespace pmsim::crash {

namespace {

using blocks::page::ChecksumStore;
using blocks::page::Line;
using blocks::page::StoreOptions;
using blocks::page::Write;
using page::Frame;
using page::LineMask;
using page::PageId;
using page::PageModel;
using page::RecoveredPages;
using page::RecoveredStore;
using page::Shape;

/// Checksummed pages: the promise is that of the log. Flushes, snapshots and truncation must not change a page.
class ChecksumSubject final : public Subject {
 public:
  ChecksumSubject(std::uint64_t seed, const Shape& shape, Write write)
      : shape_(shape),
        write_(write),
        model_(shape.pages, shape.page_bytes),
        short_after_recovery_(seed % 2 == 0),
        repeats_after_recovery_(seed % 4 != 3),
        uneven_after_recovery_(seed % 4 == 1) {
    Random random(seed);
    LineMask all;
    all.set_first(shape.page_bytes / blocks::page::kLineBytes);
    // Every few changes the pages are flushed, get a snapshot each, and the log is cut: its ring is reused.
    while (steps_.size() < shape.operations) {
      for (PageId page = 0; page < shape.pages; ++page) {
        steps_.push_back({Step::kUpdate, page, static_cast<std::uint32_t>(random.below(all.count())),
                          random.below(2) == 0 ? 1 : PageModel::kLineWords});
        steps_.push_back({Step::kFlush, page, 0});
        steps_.push_back({Step::kSnapshot, page, 0});
      }
      steps_.push_back({Step::kTruncate, 0, 0});
    }
    // What is repeated ends in zeros, as what lies there does: so its last word is not missing. And recovery
    // leaves the pages alone, which would wait for what it has cleared.
    steps_.push_back({Step::kUpdate, 0, 0, repeats_after_recovery_ ? kHalf : PageModel::kLineWords});
    steps_.push_back({Step::kUpdate, 1, 0, repeats_after_recovery_ ? PageModel::kLineWords : 1});
  }

  void create(memory::SimMemory& memory) override {
    const StoreOptions options{.page_bytes = shape_.page_bytes, .pages = shape_.pages, .write = write_};
    const memory::Address data = memory.allocate(memory::Medium::kDram, shape_.pages * shape_.page_bytes);
    for (PageId page = 0; page < shape_.pages; ++page) {
      Frame frame{.data = data + page * shape_.page_bytes, .dirty = {}, .resident = {}};
      frame.resident.set_first(options.lines());
      frames_.push_back(frame);
    }
    store_.emplace(memory, options, 2 * shape_.pages - 1);
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(steps_.size()); }

  void run(memory::SimMemory& memory, std::uint32_t index) override {
    last_ = steps_[index];
    const auto [kind, page, number, words] = last_;
    Frame& frame = frames_[page];
    switch (kind) {
      case Step::kUpdate: {
        LineMask lines;
        lines.set(number);
        if (words == kAsBefore)
          model_.change_last_word(page, number, before_crash_, stamps_before_ + index + 1);
        else
          model_.change(page, lines, stamps_before_ + index + 1, words);
        const Line content = line_of(page, number);
        model_.begin(page);
        store_->update(memory, page, number, content, frame);
        model_.acknowledge();
        break;
      }
      case Step::kFlush:
        store_->flush(memory, page, frame);
        break;
      case Step::kSnapshot:
        store_->snapshot(memory, page, frame);
        break;
      case Step::kTruncate:
        store_->truncate(memory);
        break;
    }
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(memory::SimMemory& memory) const override {
    auto found = std::make_unique<RecoveredFrames>(*store_);
    ChecksumStore& store = found->store;
    std::vector<Frame>& frames = found->frames;
    frames = frames_;
    found->pages.resize(shape_.pages);
    store.recover(memory, frames);
    for (PageId page = 0; page < shape_.pages; ++page) {
      take_page(memory, store.home(), static_cast<blocks::page::SlotId>(page), page, *found);
      page::Bytes frame(shape_.page_bytes);
      memory.peek(frames[page].data, frame);
      if (frame != found->pages[page])
        found->problem = "page " + std::to_string(page) + " in DRAM is not the one in its slot";
      // A page that nobody has changed yet reads as zeros.
      if (!model_.exists(page) && found->pages[page] == page::Bytes(shape_.page_bytes))
        found->pages[page].clear();
    }
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, memory::SimMemory&) const override {
    return model_.check(static_cast<const RecoveredPages&>(recovered));
  }

  /// Goes on with a change where the last one was, if the log has room: over what a torn one has left behind.
  /// Three programs of four repeat the last one but for a word at the end of its line, so that the first
  /// words of the new change can complete the old one. Half of the programs leave it at that, the others flush
  /// and snapshot each page, truncate the log and change a page once more. One of four, where the log has room,
  /// renews one snapshot only before it truncates the log, and flushes another page: whose snapshot may be old,
  /// so that the log must still have what a torn flush loses.
  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<RecoveredFrames&>(recovered);
    auto next = std::make_unique<ChecksumSubject>(*this);
    next->store_ = std::move(found.store);
    next->frames_ = std::move(found.frames);
    next->before_crash_ = line_of(last_.page, last_.line);
    next->model_.begin_with(found.pages);
    next->stamps_before_ = operations();
    next->steps_.clear();
    const bool has_room = !next->store_->log_is_full();
    if (uneven_after_recovery_ && has_room) {
      next->steps_.push_back({Step::kSnapshot, 0, 0});
      next->steps_.push_back({Step::kTruncate, 0, 0});
      next->steps_.push_back({Step::kUpdate, 1, 0, PageModel::kLineWords});
      next->steps_.push_back({Step::kFlush, 1, 0});
      return next;
    }
    if (has_room)
      next->steps_.push_back({Step::kUpdate, last_.page, last_.line, repeats_after_recovery_ ? kAsBefore : 1});
    if (short_after_recovery_)
      return next;
    for (PageId page = 0; page < shape_.pages; ++page) {
      next->steps_.push_back({Step::kFlush, page, 0});
      next->steps_.push_back({Step::kSnapshot, page, 0});
    }
    next->steps_.push_back({Step::kTruncate, 0, 0});
    next->steps_.push_back({Step::kUpdate, 1, 0, 1});
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const auto [kind, page, number, words] = steps_[index];
    const std::string name = "page " + std::to_string(page);
    switch (kind) {
      case Step::kUpdate:
        return "change line " + std::to_string(number) + " of " + name + " to " +
               (words == kAsBefore ? "what it was to be when the power failed, but for its last word"
                                   : std::to_string(words) + " words and zeros");
      case Step::kFlush:
        return "flush " + name;
      case Step::kSnapshot:
        return "renew the snapshot of " + name;
      default:
        return "truncate the log";
    }
  }

 private:
  struct Step {
    enum Kind : std::uint8_t { kUpdate, kFlush, kSnapshot, kTruncate } kind;
    PageId page;
    std::uint32_t line;
    std::uint32_t words = 0;  ///< of a change; the rest of the line becomes zero, or kAsBefore
  };
  static constexpr std::uint32_t kHalf = PageModel::kLineWords / 2;
  static constexpr std::uint32_t kAsBefore = ~std::uint32_t{0};

  [[nodiscard]] Line line_of(PageId page, std::uint32_t number) const {
    Line line;
    std::memcpy(line.data(), model_.content(page).data() + number * blocks::page::kLineBytes, line.size());
    return line;
  }

  struct RecoveredFrames final : RecoveredStore<ChecksumStore> {
    using RecoveredStore::RecoveredStore;
    std::vector<Frame> frames;
  };

  Shape shape_;
  Write write_;
  PageModel model_;
  std::vector<Step> steps_;
  std::uint32_t stamps_before_ = 0;  ///< of the program that has crashed
  Step last_{};                      ///< that has begun
  Line before_crash_{};              ///< of the program that has crashed, the line of its last change
  bool short_after_recovery_;
  bool repeats_after_recovery_;
  bool uneven_after_recovery_;
  std::vector<Frame> frames_;
  std::optional<ChecksumStore> store_;
};

template <Write kWrite, std::uint32_t kSmallBytes>
std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) {
  return std::make_unique<ChecksumSubject>(seed, page::shape_of(scale, kSmallBytes), kWrite);
}

}  // namespace

extern const SubjectKind kPageChecksum;
extern const SubjectKind kPageChecksumClwb;

const SubjectKind kPageChecksum{"page-checksum", "pages validated by CRC-32C, repaired from snapshot and log",
                                ChecksumStore::kSites, make<Write::kStream, 64>};
const SubjectKind kPageChecksumClwb{"page-checksum-clwb", "checksummed pages with stores and clwb",
                                    ChecksumStore::kStoreSites, make<Write::kStoreFlush, 128>};

}  // namespace pmsim::crash
