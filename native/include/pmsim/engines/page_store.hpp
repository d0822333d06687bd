#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "pmsim/engines/options.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines {

using memory::Address;

/// Names a page for as long as it lives, wherever its copies are. Page 0 is the catalog.
using PageId = std::uint64_t;
inline constexpr PageId kNoPage = (PageId{1} << 62) - 1;

/// What an inner node keeps for a child: the child's PageId, or, with the most significant bit set, the address
/// of the frame that holds it (pointer swizzling, van Renen et al. 2018, section 3.3). Only a store may look
/// into one; a tree stores PageIds and follows swips by fix_child().
using Swip = std::uint64_t;

/// First bytes of every page, on every tier. The store owns them; a tree's own header follows.
struct PageHeader {
  std::uint64_t lsn;       ///< of the last logged change that this copy contains
  std::uint64_t page_id;   ///< so that a restart can rebuild the page table by reading one line per page
  std::uint64_t reserved;  ///< for the store
};
inline constexpr std::uint32_t kPageHeaderBytes = sizeof(PageHeader);

/// How a fixed page will be used.
enum class Access : std::uint8_t {
  kGrained,  ///< a few lines of it: each range is asked for by resident() before it is touched
  kChanged,  ///< the same, and the page is going to be changed (leaves)
  kFull,     ///< most of it (inner nodes, scans, restructuring): a store may load it whole
};

/// The root of a tree: never evicted while open, so a store may remember its frame.
struct RootRef {
  PageId id = kNoPage;
  Address frame = 0;  ///< the store's; 0: not known
};

/// What a transaction must be able to take back, in terms of the tree (logical undo): page-level positions may
/// have moved by the time of the rollback.
struct UndoRecord {
  enum class Kind : std::uint8_t { kUpdate, kInsert, kErase };
  Kind kind;
  std::uint16_t table;
  std::uint64_t key;
  std::uint32_t offset;               ///< in the payload; kUpdate only
  std::span<const std::byte> before;  ///< kUpdate: old bytes; kErase: the whole payload; kInsert: empty
};

/// Bytes of a page.
struct PageRange {
  std::uint32_t offset;
  std::uint32_t bytes;
};

/// What a B+-tree needs of storage: pages that are fixed, read, changed and unfixed. All engines share the
/// tree; they differ in their store.
///
/// A `Page` is a small copyable handle, valid between fix and unfix. Memory comes first in every call; a store
/// keeps no reference to it.
///  - fix, fix_child: the page that `root` names, or that the swip at [offset, offset + 8) of the fixed inner
///    page `parent` names. fix_child may rewrite the swip in place (swizzling).
///  - fix_page: the page with this id, by way of the page table: what a next-leaf link names. No swip is
///  rewritten.
///  - allocate: a new page, fixed; header filled in, the rest zero. Logged.
///  - release: gives a fixed page back for good. Logged.
///  - resident(page, offset, bytes): the address at which these bytes of the page can be loaded; contiguous.
///    Valid only until the next resident, overwrite or move *of the same page* (a mini page sorts its lines).
///    This is MakeResident of section 3.1.
///  - overwrite, move: the only ways to change a page. Both write the log's redo part. move(page, to, from,
///    bytes) has the meaning of memmove inside the page.
///  - announce(page, ranges), settle(page): the changes between the two make up one step, as the insertion of a
///    row, and stay inside the ranges, which do not overlap. A store that logs images may log all of them at
///    once and wait once. Between them nothing else is changed.
///  - unswizzle_children(page, offset, count): afterwards the `count` swips from `offset` on are PageIds:
///  called before a tree moves or copies them.
///  - load(image): bulk loading, not logged, not timed: a page with this content gets a new PageId, at its home
///    tier; durable when sync() returns. The first page of an empty store is page 0; consecutive calls give
///    consecutive PageIds, beginning with next_load(), so that a leaf can name the next one.
/// Transactions (one at a time per store: the paper's engines are single-threaded; virtual threads interleave
/// between transactions):
///  - begin; note_undo(record), written before the change it can take back; commit: DURABLE on return; abort
///    calls undo(record) for the transaction's records, latest first, unless the store undoes physically.
/// Life, for TreeEngine (tree_engine.hpp)
///  - S(memory, options): a new, empty store. S(memory, options, place): the same after shutdown() or a crash:
///    pages contain every logged change (analysis and redo are done). finish_restart(undo) then calls
///    undo(record) for what unfinished transactions did, latest first; a transaction can begin after it.
///  - checkpoint, shutdown, place, counters: as those of Engine; counters(into) adds its own to the map.
///  - check(owned): what is wrong, as one sentence, or nothing. Exactly the pages in `owned` (ascending) are
///    live: others are lost pages, missing ones have two owners. Nothing is fixed at that moment.
template <typename S, typename M>
concept PageStore =
    memory::Memory<M> &&
    requires(S store, const S& constant, M& memory, typename S::Page& page, RootRef& root, Access access,
             std::uint32_t offset, std::span<const std::byte> bytes, const UndoRecord& record,
             void (*undo)(const UndoRecord&), PageId id, const EngineOptions& options, const EnginePlace& place,
             std::map<std::string, double>& counts, std::span<const PageId> owned,
             std::span<const PageRange> ranges) {
      requires std::copyable<typename S::Page>;
      { store.fix(memory, root, access) } -> std::same_as<typename S::Page>;
      { store.fix_child(memory, page, offset, access) } -> std::same_as<typename S::Page>;
      { store.fix_page(memory, id, access) } -> std::same_as<typename S::Page>;
      { store.unfix(memory, page) } -> std::same_as<void>;
      { store.allocate(memory) } -> std::same_as<typename S::Page>;
      { store.release(memory, page) } -> std::same_as<void>;
      { constant.page_id(page) } -> std::same_as<PageId>;
      { constant.page_bytes() } -> std::same_as<std::uint32_t>;
      { store.resident(memory, page, offset, offset) } -> std::same_as<Address>;
      { store.overwrite(memory, page, offset, bytes) } -> std::same_as<void>;
      { store.move(memory, page, offset, offset, offset) } -> std::same_as<void>;
      { store.announce(memory, page, ranges) } -> std::same_as<void>;
      { store.settle(memory, page) } -> std::same_as<void>;
      { store.unswizzle_children(memory, page, offset, offset) } -> std::same_as<void>;
      { store.load(memory, bytes) } -> std::same_as<PageId>;
      { constant.next_load() } -> std::same_as<PageId>;
      { store.sync(memory) } -> std::same_as<void>;
      { store.begin(memory) } -> std::same_as<void>;
      { store.note_undo(memory, record) } -> std::same_as<void>;
      { store.commit(memory) } -> std::same_as<void>;
      { store.abort(memory, undo) } -> std::same_as<void>;
      S(memory, options);
      S(memory, options, place);
      { store.finish_restart(memory, undo) } -> std::same_as<void>;
      { store.checkpoint(memory) } -> std::same_as<void>;
      { store.shutdown(memory) } -> std::same_as<void>;
      { constant.place() } -> std::same_as<const EnginePlace&>;
      { constant.counters(counts) } -> std::same_as<void>;
      { store.check(memory, owned) } -> std::same_as<std::string>;
    };

}  // namespace pmsim::engines
