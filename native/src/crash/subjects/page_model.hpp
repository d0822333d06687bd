#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "pmsim/blocks/page/layout.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/crash/registry.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::crash::page {

using blocks::page::Frame;
using blocks::page::kLineBytes;
using blocks::page::LineMask;
using blocks::page::PageId;
using Bytes = std::vector<std::byte>;

/// The size of a checked program: pages of very few lines, so that small programs can be enumerated.
struct Shape {
  std::uint32_t page_bytes;
  std::uint64_t pages;
  std::uint32_t writers;
  std::uint32_t operations;
};

[[nodiscard]] inline Shape shape_of(Scale scale, std::uint32_t small_bytes, std::uint32_t writers = 1) {
  return scale == Scale::kSmall ? Shape{small_bytes, 2, writers, 7} : Shape{256, 3, 2, 24};
}

/// What recovery has found: each page's bytes, empty where it found none.
class RecoveredPages : public Recovered {
 public:
  std::vector<Bytes> pages;
  std::string problem;  ///< what else is wrong; empty: nothing
};

/// The same, with the store that recovery has rebuilt.
template <typename Store>
class RecoveredStore : public RecoveredPages {
 public:
  explicit RecoveredStore(const Store& crashed) : store(crashed) {}
  Store store;
};

inline constexpr std::uint32_t kFlushesAfterRecovery = 3;

/// The promise of a page store in plain memory: the acknowledged bytes of each page, and those in flight.
class PageModel {
 public:
  PageModel(std::uint64_t pages, std::uint32_t page_bytes)
      : acknowledged_(pages), frame_(pages, Bytes(page_bytes)), page_bytes_(page_bytes) {}

  static constexpr std::uint32_t kLineWords = kLineBytes / 8;

  /// New content of some lines of a page in DRAM: no word of it has been there before. With fewer `words` the
  /// rest of a line becomes zero, so that few words decide what a torn line looks like.
  void change(PageId page, const LineMask& lines, std::uint32_t stamp, std::uint32_t words = kLineWords) {
    lines.for_each([&](std::uint32_t line) {
      for (std::uint32_t word = 0; word < kLineWords; ++word) {
        const std::uint64_t value =
            word < words ? (std::uint64_t{stamp} << 32) | (page << 24) | (line * kLineWords + word + 1) : 0;
        std::memcpy(frame_[page].data() + line * kLineBytes + word * 8, &value, sizeof value);
      }
    });
  }
  /// The line as it is elsewhere, but for its last word.
  void change_last_word(PageId page, std::uint32_t line, const blocks::page::Line& like, std::uint32_t stamp) {
    LineMask lines;
    lines.set(line);
    change(page, lines, stamp);
    std::memcpy(frame_[page].data() + line * kLineBytes, like.data(), kLineBytes - 8);
  }
  /// All that recovery has found is acknowledged now; pages that were not there are zeros in DRAM.
  void begin_with(const std::vector<Bytes>& found) {
    acknowledged_ = found;
    for (PageId page = 0; page < frame_.size(); ++page)
      frame_[page] = found[page].empty() ? Bytes(page_bytes_) : found[page];
    in_flight_ = -1;
  }
  [[nodiscard]] const Bytes& content(PageId page) const { return frame_[page]; }
  [[nodiscard]] bool exists(PageId page) const { return !acknowledged_[page].empty(); }

  void begin(PageId page) { in_flight_ = static_cast<std::int64_t>(page); }
  void acknowledge() {
    acknowledged_[static_cast<PageId>(in_flight_)] = frame_[static_cast<PageId>(in_flight_)];
    in_flight_ = -1;
  }

  [[nodiscard]] std::string check(const RecoveredPages& found) const {
    for (PageId page = 0; page < frame_.size(); ++page) {
      const bool flying = in_flight_ == static_cast<std::int64_t>(page);
      if (found.pages[page] == acknowledged_[page] || (flying && found.pages[page] == frame_[page]))
        continue;
      return "page " + std::to_string(page) + " is " + shown(found.pages[page]) + "; acknowledged is " +
             shown(acknowledged_[page]) + (flying ? ", in flight " + shown(frame_[page]) : "");
    }
    return found.problem;
  }

 private:
  /// The stamps of a page's words: "[3 3 3 3 3 3 3 2]" has a torn end.
  [[nodiscard]] static std::string shown(const Bytes& page) {
    if (page.empty())
      return "absent";
    std::string text = "[";
    for (std::size_t at = 0; at < page.size(); at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, page.data() + at, sizeof word);
      text += (at == 0 ? "" : " ") + std::to_string(word >> 32) + "/" + std::to_string(word >> 24 & 0xff);
    }
    return text + "]";
  }

  std::vector<Bytes> acknowledged_;
  std::vector<Bytes> frame_;
  std::int64_t in_flight_ = -1;
  std::uint32_t page_bytes_;
};

/// What a slot holds, looked at from outside.
inline void take_page(const memory::SimMemory& memory, const blocks::page::SlotArea& area,
                      blocks::page::SlotId slot, PageId page, RecoveredPages& found) {
  found.pages[page].resize(area.page_bytes);
  memory.peek(area.payload(slot), found.pages[page]);
}

}  // namespace pmsim::crash::page
