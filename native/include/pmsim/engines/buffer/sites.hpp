#pragma once

#include <array>

#include "pmsim/blocks/site.hpp"

namespace pmsim::engines::buffer {

using memory::Site;

/// Persistence points of page write-back (1400-1599).
namespace site {
inline constexpr Site kInPlaceFence = 1400;
inline constexpr Site kInPlaceOrder = 1401;
inline constexpr Site kInPlaceFlush = 1402;
inline constexpr Site kInPlaceEnd = 1403;
inline constexpr Site kInPlaceLineFlush = 1404;
inline constexpr Site kMicroInvalidFlush = 1410;
inline constexpr Site kMicroInvalidFence = 1411;
inline constexpr Site kMicroHeadFlush = 1412;
inline constexpr Site kMicroContentFence = 1413;
inline constexpr Site kMicroValidFlush = 1414;
inline constexpr Site kMicroValidFence = 1415;
inline constexpr Site kMicroPageFence = 1416;
inline constexpr Site kMicroContentFlush = 1417;
inline constexpr Site kMicroPageFlush = 1418;
inline constexpr Site kInstallFence = 1420;
inline constexpr Site kInstallOrder = 1421;
inline constexpr Site kInstallFlush = 1422;
inline constexpr Site kInstallEnd = 1423;
inline constexpr Site kInvalidFlush = 1424;
inline constexpr Site kInvalidFence = 1425;
inline constexpr Site kInstallLineFlush = 1426;
inline constexpr Site kDirectFlush = 1430;
inline constexpr Site kDirectFence = 1431;
inline constexpr Site kDirectOrder = 1432;
inline constexpr Site kDirectLsnFlush = 1433;
inline constexpr Site kDirectEnd = 1434;
inline constexpr Site kJournalFence = 1440;
inline constexpr Site kJournalFlush = 1441;
inline constexpr Site kHomeFlush = 1442;
inline constexpr Site kReplayFlush = 1443;
inline constexpr Site kMapFence = 1450;
inline constexpr Site kMapOrder = 1451;
inline constexpr Site kMapFlush = 1452;
inline constexpr Site kMapEnd = 1453;
inline constexpr Site kMapBlocks = 1454;
inline constexpr Site kMapHead = 1455;
inline constexpr Site kLoadFence = 1460;
inline constexpr Site kLoadFlush = 1461;
}  // namespace site

using blocks::SiteInfo;

/// Of PMem pages: basic-nvm-bm, three-tier, spitfire.
inline constexpr std::array kInPlaceSites{
    SiteInfo{site::kInPlaceFence, "in place: persist overwritten lines before the LSN that covers them", {}},
    SiteInfo{site::kInPlaceOrder, "in place: the LSN is the last word of its line to change", {}},
    SiteInfo{site::kInPlaceFlush, "in place: write back the line with the LSN", {}},
    SiteInfo{site::kInPlaceEnd, "in place: persist the LSN before the log may be truncated",
             "the fence of the allocation map, which a checkpoint persists after all pages, or that of the "
             "journal, when the "
             "page goes on to the SSD, completes it before the log loses what it has"},
};
/// Of the micro log, for pages whose bytes have moved.
inline constexpr std::array kMicroLogSites{
    SiteInfo{site::kMicroInvalidFlush, "micro log: write back the invalid name", {}},
    SiteInfo{site::kMicroInvalidFence, "micro log: persist the invalid name before the content changes", {}},
    SiteInfo{
        site::kMicroHeadFlush, "micro log: write back LSN, id and the set of lines",
        "up to 20 KiB of page they share the line of the name that follows, whose write-back takes them along"},
    SiteInfo{site::kMicroContentFence, "micro log: persist the content before the log is valid", {}},
    SiteInfo{site::kMicroValidFlush, "micro log: write back the name", {}},
    SiteInfo{site::kMicroValidFence, "micro log: persist the name before the page changes", {}},
    SiteInfo{site::kMicroPageFence,
             "micro log: persist the page, in recovery too, before the log may be invalid",
             {}},
};

/// The same with ordinary stores and clwb, besides.
inline constexpr std::array kInPlaceFlushSites{
    SiteInfo{site::kInPlaceLineFlush, "in place: write back the overwritten lines", {}},
};
inline constexpr std::array kMicroLogFlushSites{
    SiteInfo{site::kMicroContentFlush, "micro log: write back the content", {}},
    SiteInfo{site::kMicroPageFlush, "micro log: write back the page, in recovery too", {}},
};
inline constexpr std::array kCacheFlushSites{
    SiteInfo{site::kInstallLineFlush, "install: write back the page", {}},
};

/// Of PMem as a cache over the SSD: three-tier, spitfire.
inline constexpr std::array kCacheSites{
    SiteInfo{site::kInstallFence, "install: persist the page before its frame is valid", {}},
    SiteInfo{site::kInstallOrder, "install: the mark of validity is the last word of its line to change", {}},
    SiteInfo{site::kInstallFlush, "install: write back the line with the mark", {}},
    SiteInfo{site::kInstallEnd, "install: persist the mark before the log may be truncated",
             "the fence of the allocation map, which a checkpoint persists after all pages, or that of the "
             "journal, when the "
             "page goes on to the SSD, completes it before the log loses what it has"},
    SiteInfo{site::kInvalidFlush, "install: write back the taken-back mark of the page before", {}},
    SiteInfo{site::kInvalidFence, "install: persist it before the frame changes", {}},
};

/// Of direct use of pages on PMem: spitfire.
inline constexpr std::array kDirectSites{
    SiteInfo{site::kDirectFlush, "direct: write back the changed bytes", {}},
    SiteInfo{site::kDirectFence, "direct: persist them before the LSN", {}},
    SiteInfo{site::kDirectOrder, "direct: the LSN is the last word of its line to change", {}},
    SiteInfo{site::kDirectLsnFlush, "direct: write back the LSN", {}},
    SiteInfo{site::kDirectEnd, "direct: persist the LSN before the log may be truncated",
             "the fence of the allocation map, which a checkpoint persists after all pages, or that of the "
             "journal, when the "
             "page goes on to the SSD, completes it before the log loses what it has"},
};

/// Of pages whose home is the SSD, with the journal on PMem,
inline constexpr std::array kPmemJournalSites{
    SiteInfo{site::kJournalFence, "journal: persist the image before the page on the SSD changes", {}},
    SiteInfo{site::kHomeFlush, "journal: pages are on the SSD before their images are written over", {}},
    SiteInfo{
        site::kReplayFlush, "journal: replayed pages are on the SSD before their images are written over", {}},
};
inline constexpr std::array kPmemMapSites{
    SiteInfo{site::kMapFence, "allocation map: persist its bits before its number", {}},
    SiteInfo{site::kMapOrder, "allocation map: its number is the last word of its line to change", {}},
    SiteInfo{site::kMapFlush, "allocation map: write back its number", {}},
    SiteInfo{site::kMapEnd, "allocation map: persist its number before the log may be truncated", {}},
};
/// or on the SSD.
inline constexpr std::array kSsdJournalSites{
    SiteInfo{site::kJournalFlush, "journal: the image is on the SSD before the page changes", {}},
    SiteInfo{
        site::kReplayFlush, "journal: replayed pages are on the SSD before their images are written over",
        "flushing an image flushes the page before it too, so only the latest page can be torn, and the next "
        "image does not take its slot"},
};
inline constexpr std::array kSsdMapSites{
    SiteInfo{site::kMapBlocks, "allocation map: its bits are on the SSD before its number", {}},
    SiteInfo{site::kMapHead, "allocation map: its number is on the SSD before the log may be truncated", {}},
};

/// The points of several parts in one array, as a subject of the crash checker wants them.
template <std::size_t... kCounts>
[[nodiscard]] constexpr auto join(const std::array<SiteInfo, kCounts>&... parts) {
  std::array<SiteInfo, (kCounts + ...)> all{};
  std::size_t at = 0;
  (..., [&] {
    for (const SiteInfo& site : parts)
      all[at++] = site;
  }());
  return all;
}

}  // namespace pmsim::engines::buffer
