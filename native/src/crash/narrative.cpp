#include "narrative.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>

namespace pmsim::crash {

namespace {

using memory::Address;
using memory::CellBytes;
using memory::DurableImage;
using memory::LogEntry;
using memory::OpKind;
using memory::SimMemory;

constexpr std::size_t kShownBytes = 16;
constexpr std::size_t kShownLosses = 16;
constexpr std::size_t kShownOperations = 12;
constexpr std::size_t kShownInARow = 3;  ///< stores of the same fate; more are counted

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

/// "log+0x40".
std::string place_of(const SimMemory& memory, Address address) {
  for (const memory::RegionPlace& place : memory.regions().places(memory::medium_of(address))) {
    if (address - place.base < place.bytes)
      return place.name + "+" + hexadecimal(address - place.base);
  }
  return hexadecimal(address);
}

std::string bytes_of(std::span<const std::byte> data) {
  std::string text;
  for (const std::byte byte : data.first(std::min(data.size(), kShownBytes))) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(byte));
    text += (text.empty() ? "" : " ") + std::string(digits.data());
  }
  return text + (data.size() > kShownBytes ? " ..." : "");
}

std::string_view verb(const LogEntry& entry) {
  if (entry.order)
    return "order";
  switch (entry.kind) {
    case OpKind::kStore:
      return "store";
    case OpKind::kStreamStore:
      return "stream";
    case OpKind::kClwb:
      return "clwb";
    case OpKind::kClflushOpt:
      return "clflushopt";
    case OpKind::kClflush:
      return "clflush";
    case OpKind::kSfence:
      return "sfence";
    case OpKind::kMfence:
      return "mfence";
    case OpKind::kBlockWrite:
      return "block write";
    case OpKind::kBlockFlush:
      return "block flush";
    default:
      return "?";
  }
}

bool is_store(const LogEntry& entry) { return !entry.data.empty(); }

/// A fence right behind a fence: a locked instruction, as of a latch, where nothing was stored between two of
/// them.
bool is_idle(const LogEntry& before, const LogEntry& entry) {
  return entry.kind == OpKind::kMfence && entry.site == memory::kNoSite && before.kind == entry.kind &&
         before.thread == entry.thread && before.operation == entry.operation;
}

/// Whether a store has left in the word what is durable there.
bool has_left(const LogEntry& entry, const LostWord& word) {
  for (std::size_t byte = 0; byte < 8; ++byte) {
    const Address at = word.address + byte;
    if (at >= entry.address && at < entry.address + entry.bytes &&
        (word.durable >> (8 * byte) & 0xff) != std::to_integer<std::uint64_t>(entry.data[at - entry.address]))
      return false;
  }
  return true;
}

/// A lost word, and the last store that has left what is durable there: null where it is older than all. Those
/// before it were overwritten, those behind it are lost.
struct Lost {
  LostWord word;
  const LogEntry* survivor = nullptr;
};
using LostWords = std::map<Address, Lost>;

/// What became of a store: how many of its words are lost. A sector, of which few words may have changed, is
/// lost as a whole.
std::string fate_of(const LogEntry& entry, const LostWords& lost) {
  const Address unit = entry.kind == OpKind::kBlockWrite ? memory::kSectorBytes : 8;
  std::size_t units = 0;
  std::size_t gone = 0;
  for (Address at = entry.address & ~(unit - 1); at < entry.address + entry.bytes; at += unit) {
    ++units;
    gone += std::any_of(lost.lower_bound(at), lost.lower_bound(at + unit), [&](const auto& word) {
      return word.second.survivor == nullptr || &entry > word.second.survivor;
    });
  }
  if (gone == 0)
    return "durable";
  return gone == units ? "LOST"
                       : "TORN: " + std::to_string(gone) + " of " + std::to_string(units) + " words lost";
}

LostWords lost_by_address(const SimMemory& memory, const DurableImage& image) {
  LostWords lost;
  for (const CellBytes& cell : image) {
    for (const LostWord& word : lost_words_of(memory, cell))
      lost.emplace(word.address, Lost{word});
  }
  for (const LogEntry& entry : memory.log()) {
    if (!is_store(entry))
      continue;
    const auto end = lost.lower_bound(entry.address + entry.bytes);
    for (auto found = lost.lower_bound(entry.address & ~Address{7}); found != end; ++found) {
      if (has_left(entry, found->second.word))
        found->second.survivor = &entry;
    }
  }
  return lost;
}

/// The log of `memory` from an entry on, one line each; `fate` of stores, where there is something to say.
template <typename Fate>
std::string entries(const SimMemory& memory, std::size_t begin, std::span<const blocks::SiteInfo> sites,
                    const Fate& fate_of_store) {
  const std::span<const LogEntry> log = memory.log();
  std::string text;
  std::string last_fate;
  std::size_t in_a_row = 0;
  std::size_t hidden = 0;
  const auto tell_hidden = [&] {
    if (hidden > 0)
      text += "      ... " + std::to_string(hidden) + " more stores" +
              (last_fate.empty() ? "" : ": " + last_fate) + "\n";
    hidden = 0;
  };
  const bool has_threads = std::ranges::any_of(log, [](const LogEntry& entry) { return entry.thread != 0; });
  std::uint32_t labelled = ~std::uint32_t{0};
  bool after_store = false;
  for (std::size_t index = begin; index < log.size(); ++index) {
    const LogEntry& entry = log[index];
    if (index > begin && is_idle(log[index - 1], entry))
      continue;
    const bool stores = is_store(entry);
    const std::string fate = stores ? fate_of_store(entry) : std::string();
    in_a_row = stores && after_store && fate == last_fate ? in_a_row + 1 : 0;
    after_store = stores;
    if (in_a_row >= kShownInARow && entry.operation == labelled) {
      ++hidden;
      continue;
    }
    tell_hidden();
    last_fate = fate;
    if (entry.operation != labelled && log.front().operation != log.back().operation)
      text += "    " + operation_name(entry.operation) + ":\n";
    labelled = entry.operation;
    std::array<char, 64> head{};
    std::snprintf(head.data(), head.size(), "      %-11s ", std::string(verb(entry)).c_str());
    text += head.data();
    if (entry.address != 0)
      text += place_of(memory, entry.address) + ", " + std::to_string(entry.bytes) + " bytes  ";
    if (stores)
      text += bytes_of(entry.data) + (fate.empty() ? "" : "  [" + fate + "]");
    if (has_threads)
      text += "  thread " + std::to_string(entry.thread) + "  ";
    if (entry.site != memory::kNoSite) {
      const auto site = std::ranges::find(sites, entry.site, &blocks::SiteInfo::id);
      text += "point " + std::to_string(entry.site);
      if (site != sites.end())
        text += " \"" + std::string(site->name) + "\"";
      text += entry.disabled ? "  REMOVED" : "";
    }
    text += "\n";
  }
  tell_hidden();
  return text;
}

}  // namespace

std::vector<LostWord> lost_words_of(const SimMemory& memory, const CellBytes& cell) {
  std::vector<LostWord> lost;
  for (std::size_t offset = 0; offset + 8 <= cell.bytes.size(); offset += 8) {
    LostWord word{cell.address + offset, 0, 0};
    std::array<std::byte, 8> stored{};
    std::size_t bytes = stored.size();
    // A region may end inside its last line.
    for (const memory::RegionPlace& place : memory.regions().places(memory::medium_of(cell.address))) {
      if (cell.address - place.base < place.bytes) {
        const std::uint64_t left = place.base + place.bytes - cell.address;
        bytes = left <= offset ? 0 : std::min<std::uint64_t>(bytes, left - offset);
      }
    }
    if (bytes == 0)
      break;
    memory.peek(word.address, std::span(stored).first(bytes));
    std::memcpy(&word.stored, stored.data(), bytes);
    std::memcpy(&word.durable, cell.bytes.data() + offset, bytes);
    if (word.stored != word.durable)
      lost.push_back(word);
  }
  return lost;
}

std::string operation_name(std::uint32_t operation) {
  return operation == 0 ? "create" : "operation " + std::to_string(operation);
}

std::string operations(const Subject& subject, const CrashPoint& point) {
  std::string text;
  const std::uint32_t first =
      point.operation > kShownOperations ? point.operation - static_cast<std::uint32_t>(kShownOperations) : 0;
  if (first > 0)
    text += "    ... " + std::to_string(first) + " operations before\n";
  for (std::uint32_t operation = std::max(1U, first + 1); operation <= point.operation; ++operation) {
    const bool in_flight = operation == point.operation && !point.acknowledged;
    text += "    " + std::to_string(operation) + "  " + subject.describe(operation - 1) +
            (in_flight ? "   <- in flight\n" : "\n");
  }
  return text;
}

std::string history(const SimMemory& memory, const DurableImage& image, std::uint32_t operation,
                    std::span<const blocks::SiteInfo> sites) {
  const LostWords lost = lost_by_address(memory, image);
  const std::span<const LogEntry> log = memory.log();
  std::size_t begin = log.size();
  for (std::size_t index = log.size(); index-- > 0;) {
    if (log[index].operation == operation)
      begin = index;
    if (is_store(log[index]) && fate_of(log[index], lost) != "durable")
      begin = std::min(begin, index);
  }
  return "  what was stored, and what became of it:\n" +
         entries(memory, begin, sites, [&](const LogEntry& entry) { return fate_of(entry, lost); });
}

std::string recovery(const SimMemory* memory, std::span<const blocks::SiteInfo> sites) {
  if (memory == nullptr || std::ranges::none_of(memory->log(), is_store))
    return "  recovery stored nothing\n";
  return "  what recovery stored:\n" +
         entries(*memory, 0, sites, [](const LogEntry&) { return std::string(); });
}

std::string losses(const SimMemory& memory, const DurableImage& image) {
  const LostWords lost = lost_by_address(memory, image);
  if (lost.empty())
    return "  nothing that was stored is lost\n";
  std::string text = "  lost words:\n";
  std::size_t shown = 0;
  for (const auto& [address, found] : lost) {
    if (shown++ == kShownLosses) {
      text += "    ... " + std::to_string(lost.size() - kShownLosses) + " more\n";
      break;
    }
    text += "    " + place_of(memory, address) + ": stored " + hexadecimal(found.word.stored) + ", found " +
            hexadecimal(found.word.durable) + "\n";
  }
  return text;
}

}  // namespace pmsim::crash
