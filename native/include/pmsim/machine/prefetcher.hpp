#pragma once

#include <array>
#include <cstdint>

#include "pmsim/machine/params.hpp"

namespace pmsim::machine {

/// The L2 stream prefetcher of one core: follows ascending accesses to consecutive lines inside a 4 KiB page
/// and runs ahead of them, never beyond the page (Intel 64 optimisation manual, "L2 hardware prefetchers")
/// unless streams cross pages.
class Prefetcher {
 public:
  explicit Prefetcher(const PrefetcherParams& params) : params_(params) {}

  /// Tells it of an L1 miss; calls fetch(line) for each line it wants in L2.
  template <typename Fetch>
  void observe(std::uint64_t line, Fetch&& fetch) {
    if (params_.enabled != 0) {
      follow(line, fetch);
    }
  }

 private:
  /// Out of line: the access, into which observe() is inlined, is where time goes with a prefetcher that is
  /// off.
  template <typename Fetch>
  [[gnu::noinline]] void follow(std::uint64_t line, Fetch&& fetch) {
    const std::uint64_t page = line / kPageLines;
    Stream* stream = find(page);
    if (stream == nullptr && params_.crosses_pages != 0) {
      stream = come_from(line);
    }
    if (stream == nullptr) {
      stream = &replace(Stream{page, line, line + 1, 1});
    } else if (line == stream->last) {
      return;
    } else if (line < stream->last || line > stream->last + kStep) {
      *stream = Stream{page, line, line + 1, 1};
    } else {
      stream->last = line;
      stream->continued = true;
      ++stream->run;
    }
    if (stream->run < params_.trigger) {
      return;
    }
    const std::uint64_t end = params_.crosses_pages != 0 ? ~std::uint64_t{0} : (page + 1) * kPageLines;
    const std::uint64_t horizon = line + static_cast<std::uint64_t>(params_.distance);
    std::uint64_t next = stream->next > line ? stream->next : line + 1;
    for (std::int64_t fetched = 0; fetched < params_.degree && next <= horizon && next < end;
         ++fetched, ++next) {
      fetch(next);
    }
    stream->next = next;
  }

  static constexpr std::uint64_t kPageLines = 64;
  static constexpr std::uint64_t kStep = 2;  ///< lines from an access of a stream to its next

  struct Stream {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint64_t last = 0;
    std::uint64_t next = 0;
    std::int64_t run = 0;
    bool continued = false;  ///< since the search for a place last came by
  };

  /// Gives the place of a stream that has not gone on for a while to another one (a clock).
  Stream& replace(const Stream& stream) noexcept {
    while (streams_[hand_].continued) {
      streams_[hand_].continued = false;
      hand_ = (hand_ + 1) % streams_.size();
    }
    Stream& replaced = streams_[hand_] = stream;
    hand_ = (hand_ + 1) % streams_.size();
    return replaced;
  }

  [[nodiscard]] Stream* find(std::uint64_t page) noexcept {
    for (Stream& stream : streams_) {
      if (stream.page == page) {
        return &stream;
      }
    }
    return nullptr;
  }

  /// The stream that comes to this line, the first of its page to be seen, out of the page before; it goes on
  /// here.
  [[nodiscard]] Stream* come_from(std::uint64_t line) noexcept {
    const std::uint64_t page = line / kPageLines;
    Stream* const stream = page == 0 ? nullptr : find(page - 1);
    if (stream == nullptr || line > stream->last + kStep) {
      return nullptr;
    }
    stream->page = page;
    return stream;
  }

  PrefetcherParams params_;
  std::array<Stream, 32>
      streams_{};  ///< "one forward or backward stream for each of 32 4-KiB pages" (same manual)
  std::size_t hand_ = 0;
};

}  // namespace pmsim::machine
