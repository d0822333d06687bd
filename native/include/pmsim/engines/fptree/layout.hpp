#pragma once

#include <array>
#include <cstdint>

#include "pmsim/blocks/index/fptree_leaf.hpp"
#include "pmsim/blocks/site.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines::fptree {

using memory::Address;

/// 56 entries in 960 bytes (van Renen et al. 2018, section 5.5).
using Leaf = blocks::index::BasicFpTreeLeaf<56>;
static_assert(Leaf::kBytes == 960 && Leaf::kPairs == memory::kLineBytes);
/// What a leaf takes of PMem, with the link to the next one.
inline constexpr std::uint64_t kLinkedLeafBytes = Leaf::kBytes + 8;

/// Inner nodes of 64 kB (the same section).
inline constexpr std::uint32_t kInnerBytes = 65536;

// The engine's persistence points beside those of the leaf (700 to 704).
inline constexpr memory::Site kFlushLoadedLeaf = 1000;
inline constexpr memory::Site kFlushLoadedLinks = 1001;
inline constexpr memory::Site kFlushTableRow = 1002;
inline constexpr memory::Site kFenceLoaded = 1003;
inline constexpr memory::Site kFlushTables = 1004;
inline constexpr memory::Site kFenceTables = 1005;
inline constexpr memory::Site kFlushErased = 1010;
inline constexpr memory::Site kFenceErased = 1011;
inline constexpr memory::Site kFlushUnlinked = 1012;
inline constexpr memory::Site kFenceUnlinked = 1013;
inline constexpr memory::Site kFlushValue = 1014;
inline constexpr memory::Site kFenceValue = 1015;
inline constexpr memory::Site kOrderSplitLog = 1020;
inline constexpr memory::Site kFlushSplitLog = 1021;
inline constexpr memory::Site kFlushNewLeaf = 1022;
inline constexpr memory::Site kFlushNewLink = 1023;
inline constexpr memory::Site kFenceNewLeaf = 1024;
inline constexpr memory::Site kFlushOldBitmap = 1025;
inline constexpr memory::Site kFenceOldBitmap = 1026;
inline constexpr memory::Site kFlushOldLink = 1027;
inline constexpr memory::Site kFenceOldLink = 1028;
inline constexpr memory::Site kFlushSplitDone = 1029;
inline constexpr memory::Site kFenceRecovered = 1030;
inline constexpr memory::Site kOrderUndo = 1040;
inline constexpr memory::Site kFlushUndo = 1041;
inline constexpr memory::Site kFenceUndo = 1042;
inline constexpr memory::Site kFlushGeneration = 1043;
inline constexpr memory::Site kFenceGeneration = 1044;

inline constexpr std::array kSites{
    Leaf::kSites[0],
    Leaf::kSites[1],
    Leaf::kSites[2],
    Leaf::kSites[3],
    Leaf::kSites[4],
    blocks::SiteInfo{kFlushLoadedLeaf, "load: write back the leaves"},
    blocks::SiteInfo{kFlushLoadedLinks, "load: write back the links of the leaves"},
    blocks::SiteInfo{kFlushTableRow, "load: write back the table's row"},
    blocks::SiteInfo{kFenceLoaded, "load: barrier between table and count of tables"},
    blocks::SiteInfo{kFlushTables, "load: write back the count of tables"},
    blocks::SiteInfo{kFenceTables, "load: barrier before the acknowledgement"},
    blocks::SiteInfo{kFlushErased, "erase: write back the bitmap"},
    blocks::SiteInfo{kFenceErased, "erase: barrier before the acknowledgement"},
    blocks::SiteInfo{kFlushUnlinked, "erase: write back the link past the empty leaf"},
    blocks::SiteInfo{kFenceUnlinked, "erase: barrier before the empty leaf is used again"},
    blocks::SiteInfo{kFlushValue, "update: write back the value"},
    blocks::SiteInfo{kFenceValue, "update: barrier before the acknowledgement"},
    blocks::SiteInfo{kOrderSplitLog, "split: the new leaf's address before the old one's, in one line"},
    blocks::SiteInfo{kFlushSplitLog, "split: write back the micro-log"},
    blocks::SiteInfo{kFlushNewLeaf, "split: write back the new leaf"},
    blocks::SiteInfo{kFlushNewLink, "split: write back the new leaf's link"},
    blocks::SiteInfo{kFenceNewLeaf, "split: barrier between micro-log, new leaf and the old leaf's bitmap"},
    blocks::SiteInfo{kFlushOldBitmap, "split: write back the old leaf's bitmap"},
    blocks::SiteInfo{kFenceOldBitmap, "split: barrier between bitmap and link"},
    blocks::SiteInfo{kFlushOldLink, "split: write back the link to the new leaf"},
    blocks::SiteInfo{kFenceOldLink, "split: barrier between link and the end of the micro-log"},
    blocks::SiteInfo{kFlushSplitDone, "split: write back the empty micro-log"},
    blocks::SiteInfo{kFenceRecovered,
                     "restart: barrier behind the end of a split, before the leaves change again"},
    blocks::SiteInfo{kOrderUndo, "undo log: an entry's tag after the rest of it, in one line"},
    blocks::SiteInfo{kFlushUndo, "undo log: write back the entry"},
    blocks::SiteInfo{kFenceUndo, "undo log: barrier between entry and change"},
    blocks::SiteInfo{kFlushGeneration, "commit: write back the generation"},
    blocks::SiteInfo{kFenceGeneration, "commit: barrier before the acknowledgement"},
};

/// The engine's own data on PMem, in one region (EnginePlace::meta). Zero bytes are an engine without tables.
struct Meta {
  static constexpr Address kSplitOld = 0;  ///< micro-log of the one split under way: addresses; 0: none
  static constexpr Address kSplitNew = 8;
  static constexpr Address kGeneration = 64;  ///< undo entries of this generation are valid
  static constexpr Address kTables = 128;     ///< how many rows are valid
  static constexpr Address kRows = 192;       ///< each: address of the first leaf, name
  static constexpr Address kRowBytes = 64;
  static constexpr std::uint32_t kMaxTables = 16;
  static constexpr std::uint32_t kNameBytes = 56;
  static constexpr Address kUndo = kRows + kMaxTables * kRowBytes;

  [[nodiscard]] static constexpr Address row(Address meta, std::uint32_t table) noexcept {
    return meta + kRows + table * kRowBytes;
  }
};

}  // namespace pmsim::engines::fptree
