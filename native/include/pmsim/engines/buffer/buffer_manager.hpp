#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "pmsim/engines/buffer/config.hpp"
#include "pmsim/engines/buffer/counters.hpp"
#include "pmsim/engines/buffer/frame.hpp"
#include "pmsim/engines/page_store.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::engines::buffer {

/// HyMem's buffer manager over DRAM, PMem and SSD, and by configuration its rivals
/// (docs/engines/buffer_manager.md).
///
/// Not thread-safe; virtual threads take turns between transactions. Pages are used in DRAM (spitfire: on PMem
/// too).
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

  [[nodiscard]] const EnginePlace& place() const noexcept;  ///< log is 0: it is the caller's
  [[nodiscard]] const BufferConfig& config() const noexcept;
  [[nodiscard]] std::uint32_t page_bytes() const noexcept;
  /// Config's spare_dram_bytes in the DRAM region, aligned to 4 KiB.
  [[nodiscard]] Address spare_dram() const noexcept;
  void before_write_back(BeforeWriteBack hook);

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
  /// on PMem: by chance Dw it first migrates to DRAM; otherwise the log is forced up to `lsn` by
  /// before_write_back (the record, and what undoes it), and the change is durable on return.
  void overwrite(M& memory, Page& page, std::uint32_t offset, std::span<const std::byte> bytes,
                 std::uint64_t lsn);
  /// memmove inside the page. A page used on PMem migrates to DRAM.
  void move(M& memory, Page& page, std::uint32_t to, std::uint32_t from, std::uint32_t bytes,
            std::uint64_t lsn);
  /// The page is zero but for its header: redo of an allocation. Counts as Change::kMove.
  void format(M& memory, Page& page, std::uint64_t lsn);

  // Transactions.
  void pin(M& memory, Page& page);
  /// The transaction has ended and its log is durable: its pages may be written back, its releases take place.
  void unpin_all(M& memory);

  // Checkpoint: write_back_all(), persist_allocation(), and only then may the log be truncated. Nothing is
  // pinned.
  void write_back_all(M& memory);
  void persist_allocation(M& memory);
  /// Frames that hold changes: visit(id, lsn).
  void for_each_dirty(M& memory, const std::function<void(PageId, std::uint64_t)>& visit);

  // Bulk loading, as in PageStore: to the home tier and, while it has free frames, into the PMem cache.
  PageId load(M& memory, std::span<const std::byte> image);
  [[nodiscard]] PageId next_load() const noexcept;
  void sync(M& memory);

  // Restart: recover(); then the log's redo by redo_allocate, redo_release and fix_page + format, overwrite,
  // move.
  /// Repairs pages torn by the crash (journal, micro log), loads the map of allocated pages as of the last
  /// persist_allocation(), and rebuilds the combined page table by reading one line of every frame on PMem
  /// (section 4.4).
  void recover(M& memory);
  void redo_allocate(M& memory, PageId id);
  void redo_release(M& memory, PageId id);

  void counters(std::map<std::string, double>& into) const;
  [[nodiscard]] const BufferCounters& counts() const noexcept;
  /// What is wrong, as one sentence, or nothing; `owned` as in PageStore. Nothing is fixed or pinned.
  [[nodiscard]] std::string check(M& memory, std::span<const PageId> owned);
};

}  // namespace pmsim::engines::buffer
