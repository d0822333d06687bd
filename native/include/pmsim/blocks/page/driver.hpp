#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "pmsim/blocks/page/checksum.hpp"
#include "pmsim/blocks/page/cow_invalidate.hpp"
#include "pmsim/blocks/page/hybrid.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim::blocks::page {

enum class Technique : std::uint8_t { kCow, kCowLoad, kCowInvalidate, kMicroLog, kHybrid, kChecksum, kCrcOnly };

/// The names of the techniques, in the order of the enumeration.
inline constexpr std::array<std::string_view, 7> kTechniqueNames{
    "cow", "cow-load", "cow-invalidate", "microlog", "hybrid", "checksum", "crc32c"};

struct DriverOptions {
  StoreOptions store;
  Technique technique = Technique::kCow;
  std::uint32_t dirty_lines = 256;  ///< of each page, at random places in it
  bool random_order = false;        ///< of the pages; otherwise ascending
  bool fill = false;  ///< write the DRAM pages first: real memory that was never written is one zero page
  CostModel costs;
  std::uint64_t seed = 0;
};

/// The microbenchmark of Fig. 7: every writer flushes the pages of its part of the store, one after the other,
/// each with the same number of dirty lines at random places. All pages lie in DRAM (cow-load: only their dirty
/// lines) and, before the first flush, in a slot each.
template <memory::Memory M>
class PageFlushDriver {
 public:
  PageFlushDriver(M& memory, const DriverOptions& options) : options_((options.store.check(), options)) {
    StoreOptions& store = options_.store;
    if (options.dirty_lines == 0 || options.dirty_lines > store.lines())
      throw ConfigError("dirty_lines: must be between 1 and the " + std::to_string(store.lines()) +
                        " lines of a page");
    per_writer_ = store.pages / store.writers;
    if (per_writer_ == 0)
      throw ConfigError("pages: each thread needs at least one page of its own");
    store.pages = per_writer_ * store.writers;
    data_ = memory.allocate(memory::Medium::kDram, store.pages * store.page_bytes,
                            {.name = "DRAM pages", .alignment = 1 << 21});
    if (options.fill)
      fill(memory);
    prepare(memory);
    memory.sfence(memory::kNoSite);
    Random random(options.seed);
    for (LineMask& pattern : patterns_) {
      while (pattern.count() < options.dirty_lines)
        pattern.set(static_cast<std::uint32_t>(random.below(store.lines())));
    }
    all_.set_first(store.lines());
    for (std::uint32_t writer = 0; writer < store.writers; ++writer)
      writers_.push_back({.random = Random(mix64(options.seed + 1) + writer)});
  }

  /// Flushes the writer's next page.
  void operation(M& memory, std::uint32_t writer) {
    Writer& state = writers_[writer];
    const std::uint64_t turn =
        options_.random_order ? state.random.below(per_writer_) : state.next % per_writer_;
    const PageId page = writer * per_writer_ + turn;
    Frame frame;
    frame.data = data_ + page * options_.store.page_bytes;
    frame.dirty = patterns_[state.next % kPatterns];
    frame.resident = options_.technique == Technique::kCowLoad ? frame.dirty : all_;
    ++state.next;
    if (store_) {
      state.micro_logged += store_->uses_micro_log(page, frame) ? 1 : 0;
      store_->flush(memory, writer, page, frame);
    } else if (invalidate_) {
      invalidate_->flush(memory, writer, page, frame);
    } else if (checksum_) {
      checksum_->flush(memory, page, frame);
    } else {
      std::uint32_t checksum = 0;
      for (std::uint32_t line = 0; line < options_.store.lines(); ++line) {
        Line content;
        memory.read(frame.data + line * kLineBytes, content);
        checksum = line_checksum(memory, content, checksum);
      }
      state.checksum = checksum;
    }
  }

  [[nodiscard]] std::uint64_t pmem_bytes() const noexcept { return pmem_bytes_; }
  /// Flushes of a writer that took the micro log.
  [[nodiscard]] std::uint64_t micro_logged(std::uint32_t writer) const { return writers_[writer].micro_logged; }

 private:
  static constexpr std::size_t kPatterns = 61;
  /// On lines of their own: on real memory the writers run in parallel.
  struct alignas(kLineBytes) Writer {
    std::uint64_t next = 0;
    Random random;
    std::uint64_t micro_logged = 0;
    std::uint32_t checksum = 0;  ///< kept, so that no compiler drops the computation
  };

  void prepare(M& memory) {
    const StoreOptions& store = options_.store;
    const std::uint64_t slots = store.pages + store.writers * store.spare_slots;
    SlotArea area{.slots = slots, .page_bytes = store.page_bytes};
    pmem_bytes_ = slots * area.stride();
    const auto place = [&](PageId page) {  // each writer's pages, then its spare slots
      return static_cast<SlotId>(page + page / per_writer_ * store.spare_slots);
    };
    switch (options_.technique) {
      case Technique::kCow:
      case Technique::kCowLoad:
      case Technique::kMicroLog:
      case Technique::kHybrid: {
        const Choice choice = options_.technique == Technique::kMicroLog ? Choice::kMicroLog
                              : options_.technique == Technique::kHybrid ? Choice::kByCost
                                                                         : Choice::kCow;
        store_.emplace(memory, store, choice, options_.costs);
        for (PageId page = 0; page < store.pages; ++page)
          store_->slots().install(memory, page, place(page));
        store_->slots().deal_free();
        break;
      }
      case Technique::kCowInvalidate:
        invalidate_.emplace(SlotArea::allocate(memory, slots, store.page_bytes), store);
        for (PageId page = 0; page < store.pages; ++page)
          invalidate_->install(memory, page, place(page));
        invalidate_->deal_free();
        break;
      case Technique::kChecksum:
        checksum_.emplace(memory, store, 1);
        pmem_bytes_ *= 2;  // the snapshots
        break;
      case Technique::kCrcOnly:
        pmem_bytes_ = 0;
        break;
    }
  }

  void fill(M& memory) {
    Line line;
    Random random(options_.seed);
    for (std::uint64_t done = 0; done < options_.store.pages * options_.store.page_bytes; done += kLineBytes) {
      line.fill(static_cast<std::byte>(random.below(256)));
      memory.write(data_ + done, line);
    }
  }

  DriverOptions options_;
  std::uint64_t per_writer_ = 0;
  Address data_ = 0;
  std::uint64_t pmem_bytes_ = 0;
  std::optional<PageStore> store_;
  std::optional<CowInvalidate> invalidate_;
  std::optional<ChecksumStore> checksum_;
  std::array<LineMask, kPatterns> patterns_{};
  LineMask all_;
  std::vector<Writer> writers_;
};

}  // namespace pmsim::blocks::page
