#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/blocks/page/technique_store.hpp"
#include "pmsim/core/random.hpp"

namespace pmsim::blocks::page {

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
  /// `poll` works page by page: what is set up has a host page for each at least.
  PageFlushDriver(M& memory, const DriverOptions& options, Poll poll = {})
      : options_((options.store.check(), options)) {
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
    if (options.technique != Technique::kCrcOnly) {
      store_.emplace(memory, store, options.technique, options.costs);
      store_->install(memory, std::move(poll));
    }
    memory.sfence(memory::kNoSite);
    Random random(options.seed);
    for (LineMask& pattern : patterns_) {
      for (std::uint32_t dirty = 0; dirty < options.dirty_lines;) {
        const auto line = static_cast<std::uint32_t>(random.below(store.lines()));
        dirty += pattern.test(line) ? 0 : 1;
        pattern.set(line);
      }
    }
    all_.set_first(store.lines());
    // Not all at their first page: writers that begin together, at the same module and with the same lines,
    // stay in step for thousands of pages.
    for (std::uint32_t writer = 0; writer < store.writers; ++writer)
      writers_.push_back(
          {.next = writer * per_writer_ / store.writers, .random = Random(mix64(options.seed + 1) + writer)});
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
      state.micro_logged += store_->flush(memory, writer, page, frame) ? 1 : 0;
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

  [[nodiscard]] std::uint64_t pmem_bytes() const noexcept { return store_ ? store_->pmem_bytes() : 0; }
  /// Flushes of a writer that took the micro log.
  [[nodiscard]] std::uint64_t micro_logged(std::uint32_t writer) const { return writers_[writer].micro_logged; }

 private:
  /// Enough that few pages of a run have the same dirty lines: how many blocks these touch is chance for the
  /// whole run otherwise, and no part of a run would tell.
  static constexpr std::size_t kPatterns = 1021;
  /// On lines of their own: on real memory the writers run in parallel.
  struct alignas(kLineBytes) Writer {
    std::uint64_t next = 0;
    Random random;
    std::uint64_t micro_logged = 0;
    std::uint32_t checksum = 0;  ///< kept, so that no compiler drops the computation
  };

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
  std::optional<TechniqueStore> store_;  ///< none: only the checksum is computed
  std::vector<LineMask> patterns_ = std::vector<LineMask>(kPatterns);
  LineMask all_;
  std::vector<Writer> writers_;
};

}  // namespace pmsim::blocks::page
