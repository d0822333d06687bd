#include <memory>
#include <optional>
#include <string>

#include "page_model.hpp"
#include "pmsim/blocks/page/cow_invalidate.hpp"

namespace pmsim::crash {

namespace {

using blocks::page::CowInvalidate;
using blocks::page::SlotArea;
using blocks::page::StoreOptions;
using blocks::page::Write;
using page::Frame;
using page::LineMask;
using page::PageId;
using page::PageModel;
using page::RecoveredPages;
using page::RecoveredStore;
using page::Shape;

/// Copy on write that invalidates slots instead of numbering versions.
class CowInvalidateSubject final : public Subject {
 public:
  CowInvalidateSubject(std::uint64_t seed, const Shape& shape, Write write)
      : shape_(shape), write_(write), model_(shape.pages, shape.page_bytes), random_(seed) {
    draw_order(random_, shape.operations);
  }

  void create(memory::SimMemory& memory) override {
    const StoreOptions options{.page_bytes = shape_.page_bytes,
                               .pages = shape_.pages,
                               .writers = shape_.writers,
                               .spare_slots = 1,
                               .write = write_};
    frame_ = memory.allocate(memory::Medium::kDram, shape_.page_bytes);
    store_.emplace(SlotArea::allocate(memory, shape_.pages + shape_.writers, shape_.page_bytes), options);
  }

  [[nodiscard]] std::uint32_t operations() const override { return static_cast<std::uint32_t>(order_.size()); }

  void run(memory::SimMemory& memory, std::uint32_t index) override {
    const auto [page, writer] = order_[index];
    LineMask lines;
    lines.set_first(shape_.page_bytes / blocks::page::kLineBytes);
    model_.change(page, lines, stamps_before_ + index + 1);
    memory.write(frame_, model_.content(page));
    model_.begin(page);
    store_->flush(memory, writer, page, Frame{.data = frame_, .dirty = lines, .resident = lines});
    model_.acknowledge();
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(memory::SimMemory& memory) const override {
    auto found = std::make_unique<RecoveredStore<CowInvalidate>>(*store_);
    CowInvalidate& store = found->store;
    store.recover(memory);
    found->pages.resize(shape_.pages);
    const SlotArea& area = store.area();
    for (PageId page = 0; page < shape_.pages; ++page) {
      const auto slot = store.slot_of(page);
      if (slot != blocks::page::kNoSlot)
        take_page(memory, area, slot, page, *found);
    }
    return found;
  }

  [[nodiscard]] std::string check(const Recovered& recovered, memory::SimMemory&) const override {
    return model_.check(static_cast<const RecoveredPages&>(recovered));
  }

  [[nodiscard]] std::unique_ptr<Subject> resume(Recovered& recovered) const override {
    auto& found = static_cast<RecoveredStore<CowInvalidate>&>(recovered);
    auto next = std::make_unique<CowInvalidateSubject>(*this);
    next->store_ = std::move(found.store);
    next->model_.begin_with(found.pages);
    next->stamps_before_ = operations();
    next->order_.clear();
    next->draw_order(next->random_, page::kFlushesAfterRecovery);
    return next;
  }

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    return "writer " + std::to_string(order_[index].writer) + " flushes page " +
           std::to_string(order_[index].page);
  }

 private:
  struct Flush {
    PageId page;
    std::uint32_t writer;
  };

  void draw_order(Random& random, std::uint32_t flushes) {
    for (std::uint32_t flush = 0; flush < flushes; ++flush)
      order_.push_back({random.below(shape_.pages), static_cast<std::uint32_t>(random.below(shape_.writers))});
  }

  Shape shape_;
  Write write_;
  PageModel model_;
  Random random_;
  std::uint32_t stamps_before_ = 0;  ///< of the program that has crashed
  std::vector<Flush> order_;
  memory::Address frame_ = 0;
  std::optional<CowInvalidate> store_;
};

template <Write kWrite, std::uint32_t kSmallBytes>
std::unique_ptr<Subject> make(std::uint64_t seed, Scale scale) {
  return std::make_unique<CowInvalidateSubject>(seed, page::shape_of(scale, kSmallBytes), kWrite);
}

}  // namespace

extern const SubjectKind kPageCowInvalidate;
extern const SubjectKind kPageCowInvalidateClwb;

const SubjectKind kPageCowInvalidate{"page-cow-invalidate", "copy on write without version numbers",
                                     CowInvalidate::kSites, make<Write::kStream, 64>};
const SubjectKind kPageCowInvalidateClwb{"page-cow-invalidate-clwb",
                                         "copy on write without version numbers, stores and clwb",
                                         CowInvalidate::kStoreSites, make<Write::kStoreFlush, 128>};

}  // namespace pmsim::crash
