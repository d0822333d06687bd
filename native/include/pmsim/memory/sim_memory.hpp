#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "pmsim/core/error.hpp"
#include "pmsim/memory/copy_lines.hpp"
#include "pmsim/memory/durability.hpp"
#include "pmsim/memory/mapped_bytes.hpp"
#include "pmsim/memory/memory.hpp"
#include "pmsim/memory/region.hpp"
#include "pmsim/memory/sparse_lines.hpp"
#include "pmsim/memory/store_log.hpp"
#include "pmsim/memory/stream.hpp"
#include "pmsim/memory/wear.hpp"

namespace pmsim::memory {

struct SimOptions {
  Capacities capacities{};
  Persistence persistence = Persistence::kUntracked;  ///< of pmem and block regions with kBytes
  bool wear = false;                                  ///< count writes per line and block of pmem regions
  bool block_in_file = false;  ///< block regions are temporary files instead of the host's memory
};

/// Simulated memory: real bytes in a sparse address space, and one micro-operation per line touched.
///
/// Functional only: every call takes effect at once, its time is the machine's affair. Several virtual threads
/// share one memory by attaching their own stream (and number) before they run an operation. Not thread-safe:
/// one memory belongs to one native thread.
class SimMemory {
 public:
  explicit SimMemory(SimOptions options = {});
  SimMemory(SimMemory&&) noexcept;
  SimMemory& operator=(SimMemory&&) noexcept;
  ~SimMemory();

  /// Address of the new region. Throws ConfigError when it does not fit (see RegionTable).
  Address allocate(Medium medium, std::uint64_t bytes, const RegionOptions& options = {});

  /// From now on micro-operations go to `stream`, and fences complete the flushes of `thread`.
  void attach(Stream& stream, std::uint32_t thread = 0) noexcept;
  /// From now on nothing is emitted: for set-up that should cost no time. Bytes and tracking work as before.
  /// Returns what was attached.
  Stream* detach() noexcept { return std::exchange(stream_, nullptr); }
  /// What detach() has returned, in the name of the same thread.
  void attach_again(Stream* stream) noexcept { stream_ = stream; }
  /// Null where nothing is emitted.
  [[nodiscard]] Stream* attached() const noexcept { return stream_; }

  template <Value T>
  [[nodiscard]] T load(Address address) {
    return load_as<T>(address, 0);
  }
  template <Value T>
  [[nodiscard]] T load_dependent(Address address) {
    return load_as<T>(address, kDependent);
  }
  template <Value T>
  void store(Address address, const std::type_identity_t<T>& value) {
    ensure((address & (alignof(T) - 1)) == 0, "a typed store is not aligned; use write()");
    put<OpKind::kStore>(address, std::as_bytes(std::span(&value, 1)));
  }
  void read(Address address, std::span<std::byte> into) { read_as(address, into, 0); }
  /// Its first line waits for the last load, of which it has the address.
  void read_dependent(Address address, std::span<std::byte> into) { read_as(address, into, kDependent); }
  void write(Address address, std::span<const std::byte> from) {
    if (!from.empty())
      put<OpKind::kStore>(address, from);
  }
  void stream(Address address, std::span<const std::byte> from) {
    ensure(((address | from.size()) & (kAtomicBytes - 1)) == 0, "stream() needs multiples of 8 bytes");
    if (!from.empty())
      put<OpKind::kStreamStore>(address, from);
  }
  /// The instructions lie between the accesses: they fill the window, and so bound how many misses overlap.
  void copy_lines(Address from, Address to, std::uint32_t lines) {
    ensure(((from | to) & kLineMask) == 0 && medium_of(to) == Medium::kDram,
           "copy_lines() needs lines of dram");
    compute(0, CopyInstructions::kEntry + (lines % 4 != 0 ? CopyInstructions::kOdd : 0));
    std::array<std::byte, kLineBytes> content;
    for (std::uint32_t line = 0; line < lines; ++line) {
      read(from + line * kLineBytes, content);
      write(to + line * kLineBytes, content);
      compute(0, CopyInstructions::of(line, lines));
    }
  }
  void flush(Address address, std::size_t bytes, FlushKind kind = FlushKind::kClwb, Site site = kNoSite) {
    if (bytes == 0)
      return;
    if (tracking_) [[unlikely]]
      note(op_kind(kind), site, address, bytes);
    if (site == disabled_site_)
      return;
    static_cast<void>(region_of(address, bytes));
    for (Address line = address & ~kLineMask; line < address + bytes; line += kLineBytes) {
      emit(op_kind(kind), line, kLineBytes, 0, site);
      if (tracking_) [[unlikely]]
        track_flush(line, kind);
    }
  }
  void sfence(Site site = kNoSite) { fence(OpKind::kSfence, site); }
  void mfence(Site site = kNoSite) { fence(OpKind::kMfence, site); }
  /// Emits nothing: an ordering point costs nothing.
  void order(Site site = kNoSite) {
    if (tracking_) [[unlikely]]
      track_order(site);
  }
  void prefetch(Address address) {
    static_cast<void>(region_of(address, 1));
    emit(OpKind::kPrefetch, address & ~kLineMask, kLineBytes);
  }
  std::uint64_t fetch_add(Address address, std::uint64_t delta) {
    const std::uint64_t before = word_at(address);
    change_word(OpKind::kAtomic, address, before + delta);
    return before;
  }
  /// One that fails takes the line as well, and writes what was there.
  std::uint64_t compare_exchange(Address address, std::uint64_t expected, std::uint64_t desired) {
    const std::uint64_t before = word_at(address);
    change_word(OpKind::kAtomic, address, before == expected ? desired : before);
    return before;
  }
  std::uint64_t acquire(Address latch, LatchMode mode) {
    std::uint64_t before = word_at(latch);
    if (mode == LatchMode::kAttempt && !LatchWord::admits(before, mode)) {
      emit(OpKind::kLoad, latch, sizeof before);
      return LatchWord::kNotAcquired;
    }
    for (; !LatchWord::admits(before, mode); before = word_at(latch)) {
      ensure(static_cast<bool>(on_latch_wait_), "a latch is acquired that is held already");
      on_latch_wait_();
    }
    change_word(OpKind::kAcquire, latch, LatchWord::held(before, mode), mode);
    return LatchWord::version(before);
  }
  bool release(Address latch, LatchMode mode, std::uint64_t version) {
    const std::uint64_t before = word_at(latch);
    ensure(mode == LatchMode::kOptimistic ||
               (LatchWord::is_held(before, mode) && LatchWord::version(before) == version),
           "a latch is released that is not held like that");
    change_word(OpKind::kRelease, latch, LatchWord::released(before, mode), mode);
    return true;
  }
  void compute(std::uint64_t cycles, std::uint32_t instructions) {
    emit(OpKind::kCompute, cycles, instructions);
  }
  void mispredict(BranchOn on = BranchOn::kLastLoad) {
    emit(OpKind::kCompute, 0, 1, on == BranchOn::kLastLoad ? kDependent : kSerialising);
  }
  void block_read(Address device, Address destination, std::size_t bytes);
  void block_write(Address device, Address source, std::size_t bytes);
  void block_flush(Site site = kNoSite);
  /// Operations run one after the other: it is the machine that finds others to go with.
  std::uint64_t block_gather(Address device, Address source, std::size_t bytes) {
    transfer(OpKind::kBlockGather, device, source, bytes);
    return ++gathered_;
  }
  void block_commit(std::uint64_t gathered, Site site = kNoSite) {
    ensure(gathered != 0 && gathered <= gathered_, "a commit of what nobody has gathered");
    empty_write_cache(OpKind::kBlockCommit, site);
  }
  void operation_begin() { emit(OpKind::kOperationBegin, 0, 0); }
  void operation_end() { emit(OpKind::kOperationEnd, 0, 0); }
  Section enter(Section section) {
    const Section before = section_;
    if (marks_sections_ && section != before) [[unlikely]] {
      section_ = section;
      // A stream that is being stopped (Stream::on_poll) wants no mark, and must not throw once more.
      if (std::uncaught_exceptions() == 0)
        emit(OpKind::kCompute, 0, 0, kEntersSection, static_cast<Site>(section));
    }
    return before;
  }
  /// From now on sections are marked in the stream. Threads take turns in Section::kWork alone.
  void mark_sections() noexcept { marks_sections_ = true; }
  /// kWork, where they are not marked.
  [[nodiscard]] Section section() const noexcept { return section_; }

  /// Makes the flushes, fences and ordering points of one site do nothing: the mutation test of the crash
  /// checker. kNoSite enables all.
  void disable_site(Site site) noexcept { disabled_site_ = site == kNoSite ? kNothingDisabled : site; }

  /// How often a persistence point has been executed while tracking, disabled or not: a mutation test must not
  /// pass because its point was never reached.
  [[nodiscard]] std::uint64_t site_uses(Site site) const noexcept {
    return site < site_uses_.size() ? site_uses_[site] : 0;
  }

  /// Every line has been evicted and every sector destaged, as may happen at any time: what has been stored so
  /// far is durable, where persistence is tracked.
  void make_all_durable() {
    if (durability_)
      durability_->clear();
  }

  /// From now on, while tracking, what changes durability is written down, for counter-examples.
  void keep_log() { log_.emplace(); }
  /// Empty when it is not kept.
  [[nodiscard]] std::span<const LogEntry> log() const noexcept {
    return log_ ? std::span<const LogEntry>(*log_) : std::span<const LogEntry>();
  }
  /// Does what an entry of another memory's log says, in the name of its thread and without a trace in any
  /// stream. Both memories have the same regions.
  void replay(const LogEntry& entry);
  /// What LogEntry::operation says from now on.
  void label_operation(std::uint32_t operation) noexcept { operation_ = operation; }

  /// Called after each kPollEvery fences and block transfers, those of detached work among them; may throw to
  /// stop it. Whoever writes pages does one of them for each: 10 to 50 ms of checkpoints. The poll of an
  /// attached stream is called, too.
  void on_poll(std::function<void()> poll) { poll_ = std::move(poll); }
  static constexpr std::uint32_t kPollEvery = 1024;

  /// Called after each micro-operation that can change what is durable, while tracking: where a crash checker
  /// looks. The callback must not use this memory except through const functions.
  void on_persistence_step(std::function<void()> callback) { on_step_ = std::move(callback); }

  /// Called, again and again, while a latch that is to be acquired is held: lets another thread go on. Without
  /// it, nobody else could give the latch up.
  void on_latch_wait(std::function<void()> callback) { on_latch_wait_ = std::move(callback); }

  /// What survives a power failure at this moment. Throws ConfigError when persistence is not tracked.
  [[nodiscard]] const DurabilityTracker& durability() const;
  /// Of the word at `address`; whatever is not tracked (dram) is lost.
  [[nodiscard]] WordState word_state(Address address) const;
  /// The memory after a crash that left `image`: same regions, pmem and block as durable, dram zero, no stream.
  /// `lost`: a medium whose content is gone as well, for good.
  [[nodiscard]] SimMemory crash(const DurableImage& image, std::optional<Medium> lost = std::nullopt) const;

  /// Throws ConfigError when wear is not counted.
  [[nodiscard]] WearSummary wear() const;
  /// Write counts of those lines of the region at `base` that have been written, in the order of addresses.
  [[nodiscard]] std::vector<std::uint32_t> line_writes(Address base) const;
  void reset_wear();

  /// A power failure that happens to find every line written back: dram is zero, pmem and block devices keep
  /// their bytes. One of the states that a crash may leave, for timing a restart; crash() has them all.
  void lose_dram();

  /// Reads without leaving a trace, for checks.
  void peek(Address address, std::span<std::byte> into) const;
  /// Bytes of main memory (dram and pmem) in pieces of `piece` bytes that somebody has written to; of regions
  /// that do not keep all of their bytes, all.
  [[nodiscard]] std::uint64_t main_memory_in_use(std::uint64_t piece) const;
  /// Bytes of the 4 KiB pages that have been written to; of sparse regions, of the lines.
  [[nodiscard]] std::uint64_t touched_bytes() const noexcept;
  [[nodiscard]] const RegionTable& regions() const noexcept { return table_; }

 private:
  friend class Replica;

  static constexpr Address kLineMask = kLineBytes - 1;
  static constexpr std::uint32_t kNothingDisabled = 0x1'0000;  // no site has this value

  struct Region {
    Address base = 0;
    std::uint64_t bytes = 0;
    std::size_t index = 0;  ///< in all_
    MappedBytes data;       ///< of Backing::kBytes
    SparseLines sparse;     ///< of Backing::kSparse
    MappedBytes written;    ///< one bit per page
    std::uint64_t written_pages = 0;
    std::optional<WearMap> wear;
    Backing backing = Backing::kBytes;
    bool persistent = false;  ///< its stores are followed by the durability tracker

    [[nodiscard]] bool contains(Address address, std::uint64_t count) const noexcept {
      const std::uint64_t offset = address - base;
      return offset < bytes && count <= bytes - offset;
    }
  };

  /// The region of an access. The latest region of each medium is tried first: nearly every access ends there.
  [[nodiscard]] Region& region_of(Address address, std::uint64_t bytes) {
    Region* recent = recent_[(address >> kMediumShift) & 3];
    if (recent != nullptr && recent->contains(address, bytes)) [[likely]]
      return *recent;
    return find_region(address, bytes);
  }
  Region& find_region(Address address, std::uint64_t bytes);
  Region& add_region(Address base, std::uint64_t bytes, Backing backing);
  /// Of any medium; none where there is no region.
  [[nodiscard]] Region* find_line(Address line) noexcept;
  [[nodiscard]] const Region* region_if(Address address, std::uint64_t bytes) const noexcept;

  void emit(OpKind kind, Address address, std::uint32_t bytes, std::uint8_t flags = 0, Site site = kNoSite) {
    if (stream_ != nullptr)
      stream_->push(kind, address, bytes, flags, site);
  }
  /// One micro-operation per line; a flag belongs to the first.
  void emit_lines(OpKind kind, Address address, std::uint64_t bytes, std::uint8_t flags) {
    const std::uint64_t first = kLineBytes - (address & kLineMask);
    if (bytes <= first) [[likely]]
      return emit(kind, address, static_cast<std::uint32_t>(bytes), flags);
    if (stream_ != nullptr)
      emit_long(*stream_, kind, address, bytes, flags);
  }
  static void emit_long(Stream& stream, OpKind kind, Address address, std::uint64_t bytes, std::uint8_t flags) {
    const std::uint64_t first = kLineBytes - (address & kLineMask);
    stream.push(kind, address, static_cast<std::uint32_t>(first), flags);
    address += first;
    for (bytes -= first; bytes > kLineBytes; bytes -= kLineBytes, address += kLineBytes)
      stream.push(kind, address, kLineBytes);
    stream.push(kind, address, static_cast<std::uint32_t>(bytes));
  }

  template <Value T>
  [[nodiscard]] T load_as(Address address, std::uint8_t flags) {
    ensure((address & (alignof(T) - 1)) == 0, "a typed load is not aligned; use read()");
    Region& region = region_of(address, sizeof(T));
    emit_lines(OpKind::kLoad, address, sizeof(T), flags);
    T value;
    copy_out(region, address, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  void read_as(Address address, std::span<std::byte> into, std::uint8_t flags) {
    if (into.empty())
      return;
    Region& region = region_of(address, into.size());
    emit_lines(OpKind::kLoad, address, into.size(), flags);
    copy_out(region, address, into);
  }
  static void copy_out(const Region& region, Address address, std::span<std::byte> into) noexcept {
    if (region.backing == Backing::kBytes) {
      std::memcpy(into.data(), region.data.data() + (address - region.base), into.size());
    } else if (region.backing == Backing::kSparse) {
      region.sparse.read(address - region.base, into);
    } else if (into.size() <= kLineBytes) {
      std::memset(into.data(), 0, into.size());
    } else {
      clear(into);
    }
  }
  /// Out of line: more than some bytes, where it knows how many, GCC clears by `rep stos`, which takes long to
  /// begin.
  [[gnu::noinline]] static void clear(std::span<std::byte> bytes) noexcept {
    std::memset(bytes.data(), 0, bytes.size());
  }
  static void copy_in(Region& region, Address address, std::span<const std::byte> from) {
    if (region.backing == Backing::kNone)
      return;
    if (region.backing == Backing::kSparse)
      return region.sparse.write(address - region.base, from);
    const std::uint64_t offset = address - region.base;
    std::memcpy(region.data.data() + offset, from.data(), from.size());
    for (std::uint64_t page = offset / kPageBytes; page <= (offset + from.size() - 1) / kPageBytes; ++page) {
      if ((region.written.as<std::uint8_t>()[page / 8] >> (page % 8) & 1) == 0) [[unlikely]]
        first_write(region, page);
    }
  }
  static void first_write(Region& region, std::uint64_t page);
  template <OpKind kKind>
  void put(Address address, std::span<const std::byte> from) {
    Region& region = region_of(address, from.size());
    if (tracking_) [[unlikely]]
      return put_tracked(region, kKind, address, from);
    emit_lines(kKind, address, from.size(), 0);
    copy_in(region, address, from);
  }
  [[nodiscard]] std::uint64_t word_at(Address address) {
    ensure((address & (sizeof(std::uint64_t) - 1)) == 0, "a locked access is not aligned");
    std::uint64_t word;
    copy_out(region_of(address, sizeof word), address, std::as_writable_bytes(std::span(&word, 1)));
    return word;
  }
  void change_word(OpKind kind, Address address, std::uint64_t word, LatchMode mode = LatchMode::kShared) {
    const auto bytes = std::as_bytes(std::span(&word, 1));
    Region& region = region_of(address, bytes.size());
    emit(kind, address, sizeof word, static_cast<std::uint8_t>(mode));
    if (mode == LatchMode::kOptimistic)
      return;
    if (tracking_) [[unlikely]]
      return change_tracked(region, address, bytes, kind != OpKind::kRelease || !memory::writes(mode));
    copy_in(region, address, bytes);
  }
  void fence(OpKind kind, Site site) {
    if (tracking_) [[unlikely]]
      note(kind, site, 0, 0);
    if (site == disabled_site_)
      return;
    emit(kind, 0, 0, 0, site);
    if (tracking_) [[unlikely]]
      track_fence();
    worked();
  }
  void worked() {
    if (++worked_ < kPollEvery) [[likely]]
      return;
    worked_ = 0;
    if (poll_)
      poll_();
    if (stream_ != nullptr)
      stream_->poll();
  }

  /// `locked`: by an instruction that waits for what was flushed.
  void change_tracked(Region& region, Address address, std::span<const std::byte> word, bool locked);
  void put_tracked(Region& region, OpKind kind, Address address, std::span<const std::byte> from);
  void track_flush(Address line, FlushKind kind);
  void track_fence();
  void track_order(Site site);
  /// Counts the use of a site and writes the log.
  void note(OpKind kind, Site site, Address address, std::size_t bytes);
  void put_sector(Region& to, Address device, const std::byte* data);
  /// From memory to the device.
  void transfer(OpKind kind, Address device, Address source, std::size_t bytes);
  void empty_write_cache(OpKind kind, Site site);
  [[nodiscard]] Region& block_region(Address device, std::size_t bytes);
  void step() const {
    if (on_step_)
      on_step_();
  }

  SimOptions options_;
  Stream* stream_ = nullptr;
  std::array<Region*, 4> recent_{};  ///< by medium window: 1 dram, 2 pmem
  bool tracking_ = false;
  bool marks_sections_ = false;
  Section section_ = Section::kWork;
  std::uint32_t disabled_site_ = kNothingDisabled;
  RegionTable table_;
  std::vector<std::unique_ptr<Region>> all_;
  std::optional<DurabilityTracker> durability_;
  std::function<void()> on_step_;
  std::function<void()> on_latch_wait_;
  std::function<void()> poll_;
  std::uint32_t worked_ = 0;  ///< since it was called
  std::vector<std::uint64_t> site_uses_;
  std::optional<std::vector<LogEntry>> log_;
  std::optional<std::vector<Address>> journal_;  ///< lines stored to, for replicas
  std::uint64_t changes_ = 0;                    ///< stores that changed pmem, while a journal is kept
  std::uint64_t gathered_ = 0;                   ///< calls of block_gather()
  std::uint32_t thread_ = 0;
  std::uint32_t operation_ = 0;
};

static_assert(Memory<SimMemory>);

}  // namespace pmsim::memory
