#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/engines/buffer/admission_set.hpp"
#include "pmsim/engines/buffer/config.hpp"
#include "pmsim/engines/buffer/counters.hpp"
#include "pmsim/engines/buffer/dram_pool.hpp"
#include "pmsim/engines/buffer/frame.hpp"
#include "pmsim/engines/buffer/id_table.hpp"
#include "pmsim/engines/buffer/page_allocator.hpp"
#include "pmsim/engines/buffer/pins.hpp"
#include "pmsim/engines/buffer/pmem_pool.hpp"
#include "pmsim/engines/buffer/users.hpp"
#include "pmsim/engines/buffer/write_back.hpp"
#include "pmsim/engines/cpu_work.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/engines/rollback_room.hpp"
#include "pmsim/engines/wal/dirty_queue.hpp"
#include "pmsim/memory/detached.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines::buffer {

/// HyMem's buffer manager over DRAM, PMem and SSD, and by configuration its rivals
/// (docs/engines/buffer_manager.md).
///
/// Not thread-safe; virtual threads take turns between transactions, and while one commits. Pages are used in
/// DRAM (spitfire: on PMem too).
///
/// What a log above it may rely on
///  - No-steal: what pin() names is not written back before unpin_all().
///  - Write-ahead: before_write_back(memory, lsn) is called with the page's LSN before any byte of a changed
///    page goes to a tier that survives a crash. The log must be durable up to lsn when it returns.
///  - A copy that a restart finds is, per page, either of one version (its LSN says which), or torn only in
///    bytes whose overwriting is in the log behind that LSN. So redoing, in order, each record with an LSN
///    above the page's gives the latest version.
///  - DURABLE: what write_back_all() and then persist_allocation() have written, on their return. Nothing else
///    about pages is promised; that is the log's part.
template <memory::Memory M>
class BufferManager {
 public:
  using Page = FixedPage;
  using BeforeWriteBack = std::function<void(M&, std::uint64_t lsn)>;

  /// A new one without pages. Allocates its regions: dram, pmem and ssd (pages alone), meta.
  BufferManager(M& memory, const BufferConfig& config);
  /// After a crash or a clean end: the regions are at `place`. Nothing else may be called before recover().
  BufferManager(M& memory, const BufferConfig& config, const EnginePlace& place);

  [[nodiscard]] const EnginePlace& place() const noexcept { return place_; }  ///< log: the caller's
  [[nodiscard]] const BufferConfig& config() const noexcept { return config_; }
  [[nodiscard]] std::uint32_t page_bytes() const noexcept { return config_.page_bytes; }
  /// The thread in whose name pages are used from now on.
  void work_as(std::uint32_t thread) noexcept {
    staging_ = stagings_ + thread % config_.threads * config_.page_bytes;
    pins_.work_as(thread);
  }
  /// Config's spare_dram_bytes in the DRAM region, aligned to 4 KiB.
  [[nodiscard]] Address spare_dram() const noexcept { return spare_; }
  void before_write_back(BeforeWriteBack hook) { hook_ = std::move(hook); }
  /// Those of the tree above, by page id, which readers hold optimistically: whoever changes a frame that
  /// others may be reading, without the page's latch in hand, latches the page.
  void latch_pages(const Latches& latches) noexcept { page_latches_ = latches; }

  // Pages: as in PageStore.
  [[nodiscard]] Page fix(M& memory, RootRef& root, Access access);
  [[nodiscard]] Page fix_child(M& memory, Page& parent, std::uint32_t offset, Access access);
  [[nodiscard]] Page fix_page(M& memory, PageId id, Access access);
  void unfix(M& memory, Page& page);
  [[nodiscard]] PageId page_id(const Page& page) const noexcept { return page.id; }
  [[nodiscard]] Address resident(M& memory, Page& page, std::uint32_t offset, std::uint32_t bytes);
  void unswizzle_children(M& memory, Page& page, std::uint32_t offset, std::uint32_t count);

  /// A new page, fixed: zero but for the header (LSN 0). Throws CapacityError where the home tier is full.
  /// Not pinned: pin() it, and set_lsn().
  [[nodiscard]] Page allocate(M& memory);
  /// Unfixes the page and gives it back, at the next unpin_all(): until then the crash of the open transaction
  /// needs it.
  void release(M& memory, Page& page);

  // Changes. The caller has logged them (in memory); LSNs ascend.
  /// Where [offset, offset + bytes) of the page can be changed now; contiguous; valid as long as that of
  /// resident(). Those lines count as dirty from here on. Not for pages used on PMem: see direct().
  [[nodiscard]] Address writable(M& memory, Page& page, std::uint32_t offset, std::uint32_t bytes,
                                 Change change);
  void set_lsn(M& memory, Page& page, std::uint64_t lsn);
  [[nodiscard]] std::uint64_t lsn(M& memory, Page& page);
  /// writable(), the change itself, set_lsn() and pin(): all that a logged change needs. Where the page is used
  /// on PMem: by chance Dw it first migrates to DRAM, unless it was fixed by Access::kChanged; otherwise the
  /// log is forced up to `lsn` by before_write_back (the record, and what undoes it), and the change is durable
  /// on return.
  void overwrite(M& memory, Page& page, std::uint32_t offset, std::span<const std::byte> bytes,
                 std::uint64_t lsn);
  /// memmove inside the page. A page used on PMem migrates to DRAM.
  void move(M& memory, Page& page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes,
            std::uint64_t lsn);
  /// The page is zero but for its header: redo of an allocation. Counts as Change::kMove. Pinned.
  void format(M& memory, Page& page, std::uint64_t lsn);

  // Transactions.
  void pin(M& memory, Page& page);
  /// The transaction has ended and its log is durable: its pages may be written back, its releases take place.
  /// `age`: where in the log it begins; LSNs of transactions ascend. 0: nobody will ask for pages by
  /// their age.
  void unpin_all(M& memory, std::uint64_t age = 0);

  // Checkpoint: write_back_all() or write_back_before(), persist_allocation(), and only then may the log be
  // truncated. The thread that works has pinned nothing; for write_back_all(), nobody has.
  void write_back_all(M& memory);
  static constexpr std::uint64_t kNothingDirty = ~std::uint64_t{0};
  /// Writes back the pages whose first change is by a transaction that begins before `lsn`, oldest first, and
  /// no more than `most`. Returns from where the log is still needed: kNothingDirty, or at least `lsn` where
  /// all of these have been written.
  std::uint64_t write_back_before(M& memory, std::uint64_t lsn, std::uint64_t most = ~std::uint64_t{0});
  /// Pages that are dirty, and perhaps some that have been.
  [[nodiscard]] std::uint64_t dirty_pages() const noexcept { return dirty_.size(); }
  void persist_allocation(M& memory);
  /// Frames that hold changes: visit(id, lsn).
  void for_each_dirty(M& memory, const std::function<void(PageId, std::uint64_t)>& visit);

  // Bulk loading, as in PageStore: to the home tier and, while it has free frames, into the PMem cache.
  PageId load(M& memory, std::span<const std::byte> image);
  [[nodiscard]] PageId next_load() const noexcept { return allocator_.next(); }
  /// What transactions may still take. A pinned page keeps its slot, and where its parent names its frame the
  /// slots of all above it, too: taken to be one for each eight, and one for each level, since a parent has
  /// tens of children. Those that one operation fixes are left out.
  [[nodiscard]] FreeRoom room(std::uint32_t levels) const noexcept;
  void sync(M& memory);

  // Restart: recover(); then the log's redo by redo_allocate, redo_release and fix_page + format, overwrite,
  // move.
  /// Repairs pages torn by the crash (journal, micro log), loads the map of allocated pages as of the last
  /// persist_allocation(), and rebuilds the combined page table by reading one line of every frame on PMem
  /// (section 4.4).
  void recover(M& memory);
  void redo_allocate(M& memory, PageId id);
  void redo_release(M& memory, PageId id);

  void counters(std::map<std::string, double>& into) const { counters_.add_to(into); }
  [[nodiscard]] const BufferCounters& counts() const noexcept { return counters_; }
  /// What is wrong, as one sentence, or nothing; `owned` as in PageStore. Nothing is fixed or pinned.
  [[nodiscard]] std::string check(M& memory, std::span<const PageId> owned);

 private:
  using Descriptor = PmemPool::Descriptor;

  /// Cuts the DRAM region and the meta region into their parts. Allocates them where `place_` has none.
  void lay_out(M& memory, bool fresh);
  void refuse_full_dram() const;

  // fixing.hpp
  void look_again(M& memory, PageId parent);
  /// The page's frame, fixed: in DRAM, tagged, or on PMem.
  Address fix_by_id(M& memory, PageId id, Access access);
  /// Fixes a frame that is in DRAM. Returns what a handle says.
  Address fix_frame(M& memory, Address frame, FrameHead head, Access access);
  Address load_from_pmem(M& memory, PageId id, Address source, const IdTable::Found& found,
                         std::uint64_t generation, Access access);
  Address load_from_ssd(M& memory, PageId id);
  void unfix_mini(M& memory, Address mini, FrameState state);
  /// `State` counts in `fixes`: FrameState or PmemPool::Descriptor. The caller stores it where it has changed.
  template <typename State>
  [[nodiscard]] bool is_used(Address frame, const State& state) const noexcept {
    return config_.count_fixes ? state.fixes != 0 : users_.has(untagged(frame));
  }
  template <typename State>
  void add_user(Address frame, State& state) {
    if (config_.count_fixes)
      ++state.fixes;
    else
      users_.add(untagged(frame));
  }
  template <typename State>
  void remove_user(Address frame, State& state) {
    if (!config_.count_fixes)
      return users_.remove(untagged(frame));
    ensure(state.fixes != 0, "a page is unfixed that is not fixed");
    --state.fixes;
  }
  /// What the head of a new frame says, which has one user.
  [[nodiscard]] std::uint16_t first_user(Address frame) {
    FrameState state;
    add_user(frame, state);
    return state.fixes;
  }

  // lines.hpp
  [[nodiscard]] Address data_of(Address full) const noexcept { return full + header_bytes_; }
  [[gnu::always_inline]] Address resident_full(M& memory, Address full, std::uint32_t offset,
                                               std::uint32_t bytes);
  // Not inlined into resident(): most calls are for lines that are here, and need none of these.
  [[gnu::noinline]] Address resident_mini(M& memory, Address mini, std::uint32_t offset, std::uint32_t bytes);
  [[gnu::noinline]] Address resident_on_pmem(M& memory, const Page& page, std::uint32_t offset);
  [[gnu::noinline]] void load_missing_latched(M& memory, Address full, std::uint32_t word,
                                              std::uint64_t missing, std::uint64_t have);
  void load_word(M& memory, Address full, std::uint32_t word, std::uint64_t wanted);
  [[gnu::noinline]] void load_words(M& memory, Address full, std::uint32_t first, std::uint32_t last);
  [[gnu::noinline]] void load_missing(M& memory, Address full, std::uint32_t word, std::uint64_t missing,
                                      std::uint64_t have);
  [[gnu::noinline]] void load_runs(M& memory, Address from, Address to, std::uint64_t missing);
  [[gnu::noinline]] void note_complete(M& memory, Address full);
  void load_all(M& memory, Address full);
  [[nodiscard]] Address begin_read_call(M& memory, Address source);
  /// Its buffer points to the page on PMem.
  [[nodiscard]] bool is_redirected(const FrameState& state) const noexcept {
    return config_.page_access == PageAccess::kRedirected && state.resident == 0;
  }
  /// The full page in the place of a fixed mini page.
  Address promote(M& memory, Address mini);
  /// The DRAM frame behind a handle: follows a promoted mini page; kWholeTag cleared.
  Address frame_behind(M& memory, const Page& page);

  // debugging.hpp
  void forget_lines(M& memory, Address first, std::uint32_t lines);
  [[nodiscard]] std::string wrong_line(M& memory, Address frame, const FrameHead& head);
  [[nodiscard]] std::string wrong_slot(M& memory, Address base, Address source, const FrameHead& head);
  [[nodiscard]] std::string wrong_line_of(M& memory, Address base, Address source, const FrameHead& head);
  [[gnu::noinline]] void check_use(M& memory, const Page& page);

  // frames.hpp
  static constexpr std::size_t kMaxHeaderWords = FullFrame{65536}.header_bytes() / 8;
  void write_full_header(M& memory, Address full, FrameState state, PageId id, Address source);
  Address new_full(M& memory);
  Address new_mini(M& memory);
  /// Whether clock's hand may take it; clears the reference bit otherwise.
  bool evictable(M& memory, Address frame, const FrameHead& head);
  /// Its place belongs to the caller then.
  void evict(M& memory, Address frame, const FrameHead& head);
  bool sweep_slab(M& memory, Address slab);
  void relocate(M& memory, Address mini);
  Address take_pmem(M& memory);
  [[nodiscard]] bool is_admitted(M& memory, PageId id);
  void admit_or_deny(M& memory, Address full, const FrameHead& head);
  void write_back(M& memory, Address frame, FrameHead head);
  void write_to_pmem(M& memory, Address frame, const FrameHead& head, Address target);
  void write_to_ssd(M& memory, PageId id, Address from);
  [[nodiscard]] Address begin_write_call(M& memory, Address data);
  void set_newer_than_ssd(M& memory, Address frame);
  bool is_mini_place(M& memory, Address slot, Address frame);
  /// Of the page, in its frame in DRAM.
  [[nodiscard]] Address first_line(Address frame) const noexcept {
    return untagged(frame) + (is_mini(frame) ? MiniFrame::kHeaderBytes : header_bytes_);
  }
  void call_hook(M& memory, Address first_line) {
    if (hook_)
      hook_(memory, memory.template load<std::uint64_t>(first_line));
  }
  /// Held for the look at one frame, or for an entry of a list: never while a page moves.
  [[nodiscard]] HeldLatch<M> replacing(M& memory) const {
    return HeldLatch<M>(memory, replacement_, LatchMode::kExclusive);
  }
  /// Held while a frame changes for another reason than a change of its page (swizzling, MakeResident,
  /// replacement): who reads it begins again. An attempt, because the thread may hold pages further down.
  [[nodiscard]] HeldLatch<M> changing(M& memory, PageId id) const {
    return HeldLatch<M>(memory, page_latches_.of(id), LatchMode::kAttempt);
  }
  [[nodiscard]] HeldLatch<M> changing_frame(M& memory, Address frame) const {
    if (!page_latches_.any()) [[likely]]
      return {};
    return changing(memory, memory.template load<FrameHead>(untagged(frame)).id);
  }
  [[nodiscard]] bool chance(std::size_t which) {
    return static_cast<double>(random_.next() >> 11) * 0x1p-53 < config_.migration[which];
  }

  // swizzling.hpp
  [[nodiscard]] Address parent_at(Address frame) const noexcept {
    return untagged(frame) + (is_mini(frame) ? MiniFrame::kParent : layout_.parent());
  }
  [[nodiscard]] Address parent_offset_at(Address frame) const noexcept {
    return untagged(frame) + (is_mini(frame) ? MiniFrame::kParentOffset : layout_.parent_offset());
  }
  void swizzle(M& memory, const Page& above, std::uint32_t offset, Address swip_at, Address child);
  void unswizzle(M& memory, Address frame, PageId id);
  void unswizzle_range(M& memory, Address parent, std::uint32_t offset, std::uint32_t bytes);

  // changes.hpp
  Address change(M& memory, Page& page, std::uint32_t offset, std::uint32_t bytes, Change change, bool pin);
  void mark_lines(M& memory, Address full, std::uint32_t offset, std::uint32_t bytes);
  void store_lsn(M& memory, Page& page, std::uint64_t lsn);
  void clear_page(M& memory, Address full, PageId id);
  void drop(M& memory, PageId id);

  // cleaning.hpp
  [[nodiscard]] Address frame_of(M& memory, const wal::DirtyQueue::Entry& entry);
  void note_first_change(M& memory, Address frame, std::uint64_t age);
  template <typename Visit>
  void for_each_frame(M& memory, Visit&& visit);

  // direct.hpp
  Address fix_on_pmem(M& memory, Address frame, Descriptor descriptor);
  void unfix_on_pmem(M& memory, Address frame);
  /// The DRAM frame of a page fixed on PMem that has migrated since; 0: it has not.
  Address migrated(M& memory, const Page& page);
  Address migrate(M& memory, const Page& page);
  void overwrite_on_pmem(M& memory, const Page& page, std::uint32_t offset, std::span<const std::byte> bytes,
                         std::uint64_t lsn);

  BufferConfig config_;
  FullFrame layout_;
  std::uint32_t header_bytes_;  ///< layout_'s, which every access needs
  EnginePlace place_;
  DramPool dram_;
  PmemPool pmem_;
  IdTable table_;  ///< combined: pages in DRAM, pages on PMem as a cache
  AdmissionSet admission_;
  PageAllocator allocator_;
  wal::DirtyQueue dirty_;
  PmemWriter pmem_writer_;
  SsdWriter ssd_;
  Address stagings_ = 0;     ///< a page of DRAM for each thread
  Address staging_ = 0;      ///< that of the thread that works
  Address replacement_ = 0;  ///< latch of the clocks and the free lists of frames; 0: none
  Address spare_ = 0;
  Latches page_latches_;  ///< none, where no reader is optimistic
  Users users_;           ///< where frames do not count them
  BeforeWriteBack hook_;
  BufferCounters counters_;
  Random random_;
  std::uint64_t hand_ = 0;       ///< clock's, over slots
  std::uint32_t hand_mini_ = 0;  ///< and within a slab
  Address guarded_ = 0;          ///< a frame on PMem that must not be evicted now
  Pins pins_;
  std::vector<std::byte> scratch_;  ///< for memmove
};

}  // namespace pmsim::engines::buffer

#include "pmsim/engines/buffer/changes.hpp"
#include "pmsim/engines/buffer/check.hpp"
#include "pmsim/engines/buffer/cleaning.hpp"
#include "pmsim/engines/buffer/debugging.hpp"
#include "pmsim/engines/buffer/direct.hpp"
#include "pmsim/engines/buffer/fixing.hpp"
#include "pmsim/engines/buffer/frames.hpp"
#include "pmsim/engines/buffer/lines.hpp"
#include "pmsim/engines/buffer/regions.hpp"
#include "pmsim/engines/buffer/swizzling.hpp"
