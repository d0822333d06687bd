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
using page::Shape;

/// Copy on write that invalidates slots instead of numbering versions.
class CowInvalidateSubject final : public Subject {
 public:
  CowInvalidateSubject(std::uint64_t seed, const Shape& shape, Write write)
      : shape_(shape), write_(write), model_(shape.pages, shape.page_bytes), random_(seed) {
    for (std::uint32_t index = 0; index < shape.operations; ++index)
      order_.push_back({random_.below(shape.pages), static_cast<std::uint32_t>(random_.below(shape.writers))});
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

  [[nodiscard]] std::uint32_t operations() const override { return shape_.operations; }

  void run(memory::SimMemory& memory, std::uint32_t index) override {
    const auto [page, writer] = order_[index];
    LineMask lines;
    lines.set_first(shape_.page_bytes / blocks::page::kLineBytes);
    model_.change(page, lines, index + 1);
    memory.write(frame_, model_.content(page));
    model_.begin(page);
    store_->flush(memory, writer, page, Frame{.data = frame_, .dirty = lines, .resident = lines});
    model_.acknowledge();
  }

  [[nodiscard]] std::unique_ptr<Recovered> recover(memory::SimMemory& memory) const override {
    CowInvalidate store = *store_;
    store.recover(memory);
    auto found = std::make_unique<RecoveredPages>();
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

  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    return "writer " + std::to_string(order_[index].writer) + " flushes page " +
           std::to_string(order_[index].page);
  }

 private:
  struct Flush {
    PageId page;
    std::uint32_t writer;
  };

  Shape shape_;
  Write write_;
  PageModel model_;
  Random random_;
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
