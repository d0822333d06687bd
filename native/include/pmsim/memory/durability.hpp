#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/memory.hpp"

namespace pmsim::memory {

/// Which stores survive a power failure.
enum class Persistence : std::uint8_t {
  kUntracked,  ///< nothing is recorded; full speed
  kAdr,        ///< what reached the memory controller survives; caches do not
  kEadr,       ///< caches survive too; streamed words still sit in write-combining buffers until a fence
};

/// What is known about the current value of an 8-byte word.
enum class WordState : std::uint8_t { kDurable, kMaybe, kLost };

/// The bytes that one cell (a line of pmem or a sector of a block device) has after a crash.
struct CellBytes {
  Address address;
  std::vector<std::byte> bytes;
  bool operator==(const CellBytes&) const = default;
};

/// One legal durable image: the cells whose content was uncertain, ascending; all other bytes are as last
/// written.
using DurableImage = std::vector<CellBytes>;

/// An uncertain line or sector and the distinct contents that it may have after a crash.
struct UncertainCell {
  struct Content {
    std::vector<std::byte> bytes;
    std::vector<bool> choice;  ///< per pending store, whether it is durable; empty where no clflush asks for it
  };
  Address address;
  bool is_line;
  std::vector<Content> contents;
};

/// The x86 persistence model at 8-byte granularity.
///
/// A line's image is the replay, in program order, of its certain stores, a prefix of its other cached stores,
/// and any subset of its streamed words. Lines are independent, except that a store that follows a clflush of
/// the same thread is not durable before what the clflush wrote back. A missing ordering point (disorder())
/// frees the cached stores behind it from the prefix rule until the thread's next ordering point or fence. Only
/// uncertain lines are kept: when everything in a line is certain, the visible bytes are the durable ones.
/// Stores that are never flushed are kept forever, so this is for checks, not for hour-long runs.
class DurabilityTracker {
 public:
  explicit DurabilityTracker(Persistence persistence) noexcept : persistence_(persistence) {}

  /// The thread that the following calls speak for: a fence completes the flushes of its own thread only.
  void set_thread(std::uint32_t thread) noexcept { thread_ = thread; }

  /// A cached or streamed store inside one line; `line_before` are the 64 bytes of the line before it.
  void store(Address address, std::span<const std::byte> data, const std::byte* line_before, bool streamed);
  void flush(Address line, FlushKind kind);
  void fence();
  /// An ordering point: between two stores of the thread to one line, neither compiler nor CPU swaps them.
  void order();
  /// The ordering point is missing. The thread's cached stores from here to its next ordering point or fence
  /// may become durable without each other and without the stores since the last ordering point or fence; what
  /// lies before that still comes first. (With eADR the same, as the compiler's freedom has nothing to do with
  /// caches.)
  void disorder();

  /// A write of one sector; `sector_before` are its 512 bytes before it.
  void write_sector(Address sector, const std::byte* data, const std::byte* sector_before);
  void flush_sectors() noexcept { sectors_.clear(); }

  /// Number of legal images (distinct in content), or nothing when more than `limit` combinations exist.
  [[nodiscard]] std::optional<std::uint64_t> count(std::uint64_t limit) const;
  /// All legal images, distinct in content and in a fixed order, or nothing when more than `limit` combinations
  /// exist.
  [[nodiscard]] std::optional<std::vector<DurableImage>> enumerate(std::uint64_t limit) const;
  /// One legal image drawn by `random`: every legal image can be drawn.
  [[nodiscard]] DurableImage sample(Random& random) const;
  /// The same, biased towards images near all-lost or all-durable, where most mistakes show: `image` is
  /// overwritten, so that its memory is reused. Every legal image can still be drawn.
  void sample_corners(Random& random, DurableImage& image) const;

  /// The uncertain cells; one content of each makes a legal image, unless is_coupled(). Nothing when more than
  /// `limit` combinations exist.
  [[nodiscard]] std::optional<std::vector<UncertainCell>> cells(std::uint64_t limit) const;
  /// One of them, or nothing where it has more than `limit` contents or nothing uncertain.
  [[nodiscard]] std::optional<UncertainCell> cell(Address address, std::uint64_t limit) const;
  /// Whether a clflush ties lines to each other, so that only enumerate() and sample() know what is legal.
  [[nodiscard]] bool is_coupled() const noexcept { return !clflushes_.empty(); }

  /// Everything stored so far is durable: what a power failure leaves is where the next run begins.
  void clear();

  /// Of the aligned word that contains `address`, whose current bytes are `current`.
  [[nodiscard]] WordState word_state(Address address, const std::byte* current) const;
  [[nodiscard]] std::size_t uncertain_lines() const noexcept { return lines_.size(); }

 private:
  struct Store {
    std::uint64_t sequence;
    std::uint32_t thread;
    std::uint8_t word;  ///< 0..7 within the line
    std::uint8_t mask;  ///< bytes of the word that count
    bool streamed;
    bool loose;           ///< cached, and an ordering point is missing
    bool sure;            ///< cached with eADR: durable, unless an ordering point turns out to be missing
    std::uint64_t after;  ///< of a loose store: the stores of its line up to this one come first
    std::array<std::byte, 8> bytes;
    /// May be durable or not, whatever the prefix of the others is.
    [[nodiscard]] bool is_free() const noexcept { return streamed || loose; }
    /// Belongs to the cached stores of which a prefix is durable.
    [[nodiscard]] bool is_ordered() const noexcept { return !is_free() && !sure; }
  };
  struct Line {
    std::array<std::byte, kLineBytes> certain;
    std::vector<Store> pending;  ///< program order
  };
  using SectorBytes = std::array<std::byte, kSectorBytes>;
  /// The line's cached stores up to this moment have been asked to be written back by `thread`.
  struct WriteBack {
    Address line;
    std::uint64_t sequence;
    std::uint32_t thread;
  };
  /// What a thread has done since its last ordering point or fence.
  struct Segment {
    std::uint64_t begin = 0;     ///< sequence number of the last store before it
    bool loose = false;          ///< an ordering point is missing in it
    std::vector<Address> lines;  ///< with eADR only: lines of its cached stores
  };
  /// Per pending store of a line, whether it is durable.
  using Choice = std::vector<bool>;
  using Choices = std::map<Address, Choice>;

  using Lines = std::map<Address, Line>;

  [[nodiscard]] Line& line_of(Address address, const std::byte* line_before);
  void drop(Lines::iterator line);
  static void apply(const Store& store, std::byte* line) noexcept;
  static std::array<std::byte, kLineBytes> replay(const Line& line, const Choice& choice);
  template <typename Chosen>
  void settle(Address address, Chosen chosen);
  [[nodiscard]] Segment& segment();
  void begin_segment();
  /// Whether every durable store of the line has the stores that come first with it.
  [[nodiscard]] static bool closed(const Line& line, const Choice& choice);
  [[nodiscard]] std::optional<UncertainCell> cell_of(Address address, const Line& line,
                                                     std::uint64_t limit) const;
  [[nodiscard]] static UncertainCell cell_of(Address address, const std::vector<SectorBytes>& versions);
  void keep_distinct(UncertainCell& cell) const;
  static void draw(const Line& line, Random& random, Choice& choice);
  /// Adds those stores.
  static void close(const Line& line, Choice& choice);
  /// The line's cached stores that `clflush` wrote back are durable.
  [[nodiscard]] bool complete(const WriteBack& clflush, const Choices& choices) const;
  [[nodiscard]] bool includes_later(const WriteBack& clflush, const Choices& choices) const;
  [[nodiscard]] bool legal(const Choices& choices) const;

  Persistence persistence_;
  std::uint32_t thread_ = 0;
  std::uint64_t sequence_ = 0;
  Lines lines_;
  std::vector<Lines::node_type> spare_;  ///< of lines that have settled: their memory is used again
  std::map<Address, std::vector<SectorBytes>>
      sectors_;                         ///< versions since the last flush, the certain one first
  std::vector<WriteBack> write_backs_;  ///< flushes that await their fence
  std::vector<WriteBack> streams_;      ///< lines streamed to since the thread's last fence
  std::vector<WriteBack> clflushes_;    ///< order between a clflush and its thread's later stores
  std::vector<Segment> segments_;       ///< by thread
};

}  // namespace pmsim::memory
