#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "pmsim/engines/buffer/buffer_manager.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::engines::buffer {

extern template class BufferManager<memory::SimMemory>;

using Bytes = std::vector<std::byte>;
using memory::SimMemory;

struct BufferCase {
  std::string name;
  BufferConfig config;
};
inline void PrintTo(const BufferCase& test, std::ostream* out) { *out << test.name; }

/// A configuration with room for exactly so many pages on each tier.
inline BufferConfig tiny(const std::string& engine, std::uint32_t page_bytes, std::uint64_t dram,
                         std::uint64_t pmem, std::uint64_t ssd) {
  EngineOptions options;
  options.engine = engine;
  options.page_bytes = page_bytes;
  options.dram_bytes = dram * FullFrame{page_bytes}.bytes();
  options.pmem_bytes = pmem * page_bytes;
  options.ssd_bytes = ssd * page_bytes;
  options.debug_pages = true;
  return BufferConfig::from(options);
}

/// A buffer manager on a memory of its own, and what its pages must contain.
class Rig {
 public:
  using Manager = BufferManager<SimMemory>;
  using Page = FixedPage;

  explicit Rig(BufferConfig config, const memory::SimOptions& options = {}) : memory(options), config_(config) {
    manager = std::make_unique<Manager>(memory, config_);
    hook();
  }

  void hook() {
    manager->before_write_back([this](SimMemory&, std::uint64_t up_to) { forced = std::max(forced, up_to); });
    if (config_.count_fixes)
      return;
    const std::uint64_t count = config_.home_pages();
    if (latches_ == 0)
      latches_ = memory.allocate(memory::Medium::kDram, Latches::bytes_for(count));
    for (std::uint64_t page = 0; page < count; ++page)
      memory.store<std::uint64_t>(latches_ + page * memory::kLineBytes, 0);
    manager->latch_pages(Latches(latches_, count));
  }
  /// How often a page has been latched by who changed its frame: each time it has been given up again.
  std::uint64_t times_latched(PageId id) {
    const auto word = memory.load<std::uint64_t>(latches_ + id * memory::kLineBytes);
    EXPECT_TRUE(memory::LatchWord::admits(word, memory::LatchMode::kExclusive)) << "page " << id;
    return memory::LatchWord::version(word);
  }
  /// A page with random content, allocated in a transaction of its own.
  PageId create(Random& random) {
    Page page = manager->allocate(memory);
    const PageId id = page.id;
    Bytes content = random_bytes(random, config_.page_bytes - kPageHeaderBytes);
    manager->overwrite(memory, page, kPageHeaderBytes, content, ++lsn);
    manager->unfix(memory, page);
    manager->unpin_all(memory);
    pages[id] = content;
    return id;
  }
  PageId load(Random& random) {
    Bytes image = random_bytes(random, config_.page_bytes);
    const PageId id = manager->load(memory, image);
    pages[id] = Bytes(image.begin() + kPageHeaderBytes, image.end());
    return id;
  }
  void overwrite(Page& page, std::uint32_t offset, const Bytes& bytes) {
    manager->overwrite(memory, page, offset, bytes, ++lsn);
    std::ranges::copy(bytes, pages[page.id].begin() + offset - kPageHeaderBytes);
  }
  void move(Page& page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    manager->move(memory, page, to, from, bytes, ++lsn);
    std::byte* content = pages[page.id].data() - kPageHeaderBytes;
    std::memmove(content + to, content + from, bytes);
  }
  /// Whether a range of a fixed page is what it must be. Asked for with all of its lines.
  ::testing::AssertionResult same(Page& page, std::uint32_t offset, std::uint32_t bytes) {
    Bytes found(bytes);
    memory.read(manager->resident(memory, page, offset, bytes), found);
    const Bytes& all = pages.at(page.id);
    for (std::uint32_t at = 0; at < bytes; ++at) {
      if (found[at] != all[offset + at - kPageHeaderBytes])
        return ::testing::AssertionFailure() << "page " << page.id << " differs at " << offset + at;
    }
    return ::testing::AssertionSuccess();
  }
  ::testing::AssertionResult same(PageId id, Access access = Access::kFull) {
    Page page = manager->fix_page(memory, id, access);
    auto result = same(page, kPageHeaderBytes, config_.page_bytes - kPageHeaderBytes);
    manager->unfix(memory, page);
    return result;
  }
  void touch(PageId id, Access access = Access::kGrained, std::uint32_t line = 1) {
    Page page = manager->fix_page(memory, id, access);
    EXPECT_TRUE(same(page, line * 64, 8));
    manager->unfix(memory, page);
  }
  [[nodiscard]] std::string check() {
    std::vector<PageId> owned;
    for (const auto& [id, content] : pages)
      owned.push_back(id);
    return manager->check(memory, owned);
  }
  void checkpoint() {
    manager->write_back_all(memory);
    manager->persist_allocation(memory);
  }
  /// A clean end, DRAM filled with rubbish, and a restart.
  void restart() {
    checkpoint();
    const EnginePlace place = manager->place();
    manager->counters(before_);
    manager.reset();
    const auto& regions = memory.regions().places(memory::Medium::kDram);
    const Bytes rubbish(4096, std::byte{0xa5});
    for (const auto& region : regions) {
      for (std::uint64_t at = 0; at + rubbish.size() <= region.bytes; at += rubbish.size())
        memory.write(region.base + at, rubbish);
    }
    manager = std::make_unique<Manager>(memory, config_, place);
    manager->recover(memory);
    hook();
  }
  /// Counters, those before restarts included.
  [[nodiscard]] std::map<std::string, double> done() const {
    std::map<std::string, double> all = before_;
    manager->counters(all);
    return all;
  }
  [[nodiscard]] const BufferCounters& counts() const { return manager->counts(); }
  [[nodiscard]] const BufferConfig& config() const { return config_; }

  static Bytes random_bytes(Random& random, std::size_t count) {
    Bytes bytes(count);
    for (std::byte& byte : bytes)
      byte = static_cast<std::byte>(random.next());
    return bytes;
  }

  SimMemory memory;
  std::unique_ptr<Manager> manager;
  std::map<PageId, Bytes> pages;  ///< behind the header
  std::uint64_t lsn = 0;
  std::uint64_t forced = 0;

 private:
  BufferConfig config_;
  std::map<std::string, double> before_;
  Address latches_ = 0;
};

inline constexpr std::uint32_t kPage = 16384;

inline BufferConfig three_tier(std::uint64_t dram = 8, std::uint64_t pmem = 32, std::uint64_t ssd = 64) {
  return tiny("three-tier", kPage, dram, pmem, ssd);
}

/// A rig whose first pages lie on PMem, clean.
struct OnPmem : Rig {
  explicit OnPmem(const BufferConfig& config, std::uint64_t count) : Rig(config) {
    Random random(7);
    for (std::uint64_t page = 0; page < count; ++page)
      load(random);
    manager->sync(memory);
  }
};

}  // namespace pmsim::engines::buffer
