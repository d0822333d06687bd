#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <map>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pmsim/blocks/site.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/memory/copy_lines.hpp"
#include "pmsim/memory/section.hpp"
#include "pmsim/prototype.hpp"
#include "pmsim/prototype/accesses.hpp"

namespace pmsim::prototype {

/// `pmsim.prototype.Memory` of Python as a memory for algorithms in C++: simulated, with all that is done there
/// to a prototype in Python. Lent for one call of the algorithm. What it raises comes out as
/// pybind11::error_already_set, and is raised again behind the algorithm.
class SimulatedMemory {
 public:
  using Where = std::source_location;

  /// `sites`: names of the points that the algorithm numbers; a point without a number is the line it is called
  /// from.
  SimulatedMemory(pybind11::object memory, std::span<const blocks::SiteInfo> sites)
      : memory_(std::move(memory)), sites_(sites) {
    const pybind11::tuple lent = memory_.attr("_accesses")();
    void* const accesses = PyCapsule_GetPointer(lent[0].ptr(), Accesses::kCapsule);
    if (accesses == nullptr)
      throw pybind11::error_already_set();
    accesses_ = static_cast<Accesses*>(accesses);
    among_threads_ = lent[1].cast<bool>();
  }

  Address allocate(Medium medium, std::uint64_t bytes, std::string_view name) {
    static constexpr const char* kNames[] = {"dram", "pmem", "block"};
    return memory_.attr("allocate")(kNames[memory::index_of(medium)], bytes, name).cast<Address>();
  }
  [[nodiscard]] Address region(std::string_view name) { return memory_.attr("region")(name).cast<Address>(); }
  [[nodiscard]] std::uint32_t thread() { return memory_.attr("thread").cast<std::uint32_t>(); }

  template <memory::Value T>
  [[nodiscard]] T load(Address address, const Where& where = Where::current()) {
    return load_as<T>(address, false, where);
  }
  template <memory::Value T>
  [[nodiscard]] T load_dependent(Address address, const Where& where = Where::current()) {
    return load_as<T>(address, true, where);
  }
  template <memory::Value T>
  void store(Address address, const std::type_identity_t<T>& value, const Where& where = Where::current()) {
    check_aligned<T>(address, where);
    write(address, std::as_bytes(std::span(&value, 1)), where);
  }
  void read(Address address, std::span<std::byte> into, const Where& where = Where::current()) {
    read_as(address, into, false, where);
  }
  void write(Address address, std::span<const std::byte> from, const Where& where = Where::current()) {
    in_pieces(address, from.size(), where, [&](std::size_t begin, std::size_t bytes) {
      accesses_->write(address + begin, from.data() + begin, bytes);
    });
  }
  void stream(Address address, std::span<const std::byte> from, const Where& where = Where::current()) {
    in_pieces(address, from.size(), where, [&](std::size_t begin, std::size_t bytes) {
      accesses_->stream(address + begin, from.data() + begin, bytes);
    });
  }
  /// As SimMemory::copy_lines, access by access.
  void copy_lines(Address from, Address to, std::uint32_t lines, const Where& where = Where::current()) {
    using Cost = memory::CopyInstructions;
    if (((from | to) & (memory::kLineBytes - 1)) != 0 || memory::medium_of(to) != Medium::kDram)
      refuse("copy_lines() needs lines of dram", where);
    compute(0, Cost::kEntry + (lines % 4 != 0 ? Cost::kOdd : 0));
    std::array<std::byte, memory::kLineBytes> line;
    for (std::uint32_t done = 0; done < lines; ++done) {
      read(from + done * memory::kLineBytes, line, where);
      write(to + done * memory::kLineBytes, line, where);
      compute(0, Cost::of(done, lines));
    }
  }
  void flush(Address address, std::size_t bytes, FlushKind kind = FlushKind::kClwb, Site site = memory::kNoSite,
             const Where& where = Where::current()) {
    static constexpr const char* kNames[] = {"clwb", "clflushopt", "clflush"};
    let_others_go_on();
    const Site number = point(site, where, kNames[static_cast<int>(kind)]);
    told(where, [&] { accesses_->flush(address, bytes, kind, number); });
  }
  void sfence(Site site = memory::kNoSite, const Where& where = Where::current()) {
    let_others_go_on();
    accesses_->sfence(point(site, where, "sfence"));
  }
  void mfence(Site site = memory::kNoSite, const Where& where = Where::current()) {
    let_others_go_on();
    accesses_->mfence(point(site, where, "mfence"));
  }
  void order(Site site = memory::kNoSite, const Where& where = Where::current()) {
    let_others_go_on();
    accesses_->order(point(site, where, "order"));
  }
  void prefetch(Address address, const Where& where = Where::current()) {
    let_others_go_on();
    told(where, [&] { accesses_->prefetch(address); });
  }
  std::uint64_t fetch_add(Address address, std::uint64_t delta, const Where& where = Where::current()) {
    let_others_go_on();
    count(kLockedReads);
    return told(where, [&] { return accesses_->fetch_add(address, delta); });
  }
  std::uint64_t compare_exchange(Address address, std::uint64_t expected, std::uint64_t desired,
                                 const Where& where = Where::current()) {
    let_others_go_on();
    count(kLockedReads);
    return told(where, [&] { return accesses_->compare_exchange(address, expected, desired); });
  }
  /// Alone or with other readers; prototypes neither attempt nor read optimistically.
  std::uint64_t acquire(Address latch, LatchMode mode) {
    using pybind11::literals::operator""_a;
    return memory_.attr("acquire")(latch, "shared"_a = shared(mode)).cast<std::uint64_t>();
  }
  bool release(Address latch, LatchMode mode, std::uint64_t version) {
    using pybind11::literals::operator""_a;
    memory_.attr("release")(latch, version, "shared"_a = shared(mode));
    return true;
  }
  void compute(std::uint64_t cycles, std::uint32_t instructions) {
    let_others_go_on();
    accesses_->compute(cycles, instructions);
  }
  void mispredict(memory::BranchOn on = memory::BranchOn::kLastLoad) {
    let_others_go_on();
    accesses_->mispredict(on);
  }
  void block_read(Address device, Address destination, std::size_t bytes,
                  const Where& where = Where::current()) {
    let_others_go_on();
    told(where, [&] { accesses_->block_read(device, destination, bytes); });
  }
  void block_write(Address device, Address source, std::size_t bytes, const Where& where = Where::current()) {
    let_others_go_on();
    told(where, [&] { accesses_->block_write(device, source, bytes); });
  }
  void block_flush(Site site = memory::kNoSite, const Where& where = Where::current()) {
    let_others_go_on();
    accesses_->block_flush(point(site, where, "block_flush"));
  }
  /// A group of one: who hands over writes, and who commits flushes.
  std::uint64_t block_gather(Address device, Address source, std::size_t bytes,
                             const Where& where = Where::current()) {
    block_write(device, source, bytes, where);
    return 0;
  }
  void block_commit(std::uint64_t, Site site = memory::kNoSite, const Where& where = Where::current()) {
    block_flush(site, where);
  }
  /// Who runs the algorithm frames its operations.
  void operation_begin() noexcept {}
  void operation_end() noexcept {}
  memory::Section enter(memory::Section section) noexcept { return std::exchange(section_, section); }

 private:
  /// As in Python: a locked instruction counts as so many reads in the search for loops without an end.
  static constexpr std::uint32_t kLockedReads = 1000;

  template <memory::Value T>
  static void check_aligned(Address address, const Where& where) {
    if ((address & (alignof(T) - 1)) != 0)
      refuse("a typed access is not aligned; use read() or write()", where);
  }
  template <memory::Value T>
  T load_as(Address address, bool dependent, const Where& where) {
    check_aligned<T>(address, where);
    T value;
    read_as(address, std::as_writable_bytes(std::span(&value, 1)), dependent, where);
    return value;
  }
  void read_as(Address address, std::span<std::byte> into, bool dependent, const Where& where) {
    count(1);
    in_pieces(address, into.size(), where, [&](std::size_t begin, std::size_t bytes) {
      accesses_->read(address + begin, into.data() + begin, bytes, dependent);
    });
  }
  /// All at once, or word by word where others may come between.
  template <typename Access>
  void in_pieces(Address address, std::size_t bytes, const Where& where, const Access& access) {
    if (bytes == 0)
      return;
    if (!among_threads_) {
      told(where, [&] { access(0, bytes); });
      return;
    }
    for (std::size_t begin = 0; begin < bytes;) {
      let_others_go_on();
      const std::size_t piece = std::min<std::size_t>(bytes - begin, 8 - (address + begin) % 8);
      told(where, [&] { access(begin, piece); });
      begin += piece;
    }
  }
  /// Runs an access, and says of an error where the algorithm has made it.
  template <typename Access>
  static std::invoke_result_t<const Access&> told(const Where& where, const Access& access) {
    try {
      return access();
    } catch (const ConfigError& error) {
      refuse(error.what(), where);
    }
  }
  [[noreturn]] static void refuse(const std::string& what, const Where& where) {
    throw ConfigError(what + " (" + place_of(where) + ")");
  }
  void let_others_go_on() {
    if (among_threads_)
      memory_.attr("_let_others_go_on")();
  }
  /// Python hears of many reads at once, and sees whether somebody has pressed Ctrl-C.
  void count(std::uint32_t reads) {
    reads_ += reads;
    if (reads_ >= kLockedReads) [[unlikely]]
      memory_.attr("_count")(std::exchange(reads_, 0));
  }
  static bool shared(LatchMode mode) {
    if (mode != LatchMode::kShared && mode != LatchMode::kExclusive)
      throw ConfigError("a prototype holds latches alone or with other readers");
    return mode == LatchMode::kShared;
  }
  /// Its number, by the name that Python knows it by: "Log::append, line 19 of log.hpp: clwb".
  [[nodiscard]] Site point(Site site, const Where& where, const char* what) {
    return memory_.attr("_point")(name(site, where), what).cast<Site>();
  }
  [[nodiscard]] std::string_view name(Site site, const Where& where);
  [[nodiscard]] static const std::string& place_of(const Where& where);

  pybind11::object memory_;
  std::span<const blocks::SiteInfo> sites_;
  Accesses* accesses_ = nullptr;  ///< of memory_
  bool among_threads_ = false;
  std::uint32_t reads_ = 0;  ///< that Python has not heard of
  memory::Section section_ = memory::Section::kWork;
};

/// What the compiler says of a function, without return type, template arguments and parameters.
[[nodiscard]] inline std::string plain_function(std::string_view full) {
  std::string found;
  int depth = 0;
  for (const char letter : full) {
    if (letter == '<')
      ++depth;
    else if (letter == '>')
      --depth;
    else if (depth > 0)
      continue;
    else if (letter == '(')
      break;
    else if (letter == ' ')
      found.clear();
    else
      found += letter;
  }
  return found;
}

inline std::string_view SimulatedMemory::name(Site site, const Where& where) {
  for (const blocks::SiteInfo& known : sites_) {
    if (known.id == site)
      return known.name;
  }
  return place_of(where);
}

inline const std::string& SimulatedMemory::place_of(const Where& where) {
  // Composed once for each line that calls; a line has one file and one function, whose texts do not move.
  static std::map<std::pair<const char*, std::uint_least32_t>, std::string> composed;
  std::string& found = composed[{where.function_name(), where.line()}];
  if (found.empty()) {
    const std::string_view path = where.file_name();
    found = plain_function(where.function_name()) + ", line " + std::to_string(where.line()) + " of " +
            std::string(path.substr(path.rfind('/') + 1));
  }
  return found;
}

static_assert(Memory<SimulatedMemory>);

}  // namespace pmsim::prototype
