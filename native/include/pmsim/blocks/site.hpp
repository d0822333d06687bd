#pragma once

#include <string_view>

#include "pmsim/memory/memory.hpp"

namespace pmsim::blocks {

/// One persistence point of an algorithm: a flush, a fence, or an ordering point between two stores to a line.
///
/// Every block publishes its points as `kSites`. The crash checker disables them one at a time and demands a
/// violation from each, unless `redundant` says why the algorithm keeps its promise without it.
/// Identifiers are unique over all blocks, so that blocks can be composed: logs 100..299, page propagation
/// 300..499, in-place updates 500..699, index nodes 700..899, undo-log transactions 900..949, their heap
/// 950..979, sorted runs 980..999, engines from 1000.
struct SiteInfo {
  memory::Site id;
  std::string_view name;            ///< what it does, in the paper's words: "entry: persist the length"
  std::string_view redundant = {};  ///< why no crash can tell; empty: it is needed
};

}  // namespace pmsim::blocks
