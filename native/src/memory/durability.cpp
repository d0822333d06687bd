#include "pmsim/memory/durability.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "pmsim/core/error.hpp"

namespace pmsim::memory {

/// The distinct contents that one uncertain line or sector may have, each with the cached prefix behind it.
struct DurabilityTracker::Cell {
  struct Content {
    std::vector<std::byte> bytes;
    std::size_t prefix;
  };
  Address address;
  bool is_line;
  std::vector<Content> contents;
};

namespace {

constexpr std::size_t kMostStreamed = 20;  // 2^20 subsets of one line: beyond any useful limit

std::size_t cached_in(const auto& pending) {
  return static_cast<std::size_t>(
      std::ranges::count_if(pending, [](const auto& store) { return !store.streamed; }));
}

}  // namespace

void DurabilityTracker::apply(const Store& store, std::byte* line) noexcept {
  for (std::size_t byte = 0; byte < kAtomicBytes; ++byte) {
    if ((store.mask >> byte & 1) != 0)
      line[store.word * kAtomicBytes + byte] = store.bytes[byte];
  }
}

std::array<std::byte, kLineBytes> DurabilityTracker::replay(const Line& line, const Choice& choice) {
  std::array<std::byte, kLineBytes> bytes = line.certain;
  std::size_t cached = 0;
  std::size_t streamed = 0;
  for (const Store& store : line.pending) {
    const bool durable = store.streamed ? (choice.streamed >> streamed++ & 1) != 0 : cached++ < choice.prefix;
    if (durable)
      apply(store, bytes.data());
  }
  return bytes;
}

void DurabilityTracker::store(Address address, std::span<const std::byte> data, const std::byte* line_before,
                              bool streamed) {
  const Address line_address = address & ~Address{kLineBytes - 1};
  ensure(!data.empty() && address - line_address + data.size() <= kLineBytes, "a tracked store crosses a line");
  auto [found, inserted] = lines_.try_emplace(line_address);
  if (inserted)
    std::memcpy(found->second.certain.data(), line_before, kLineBytes);
  std::size_t done = 0;
  while (done < data.size()) {
    const std::size_t offset = address - line_address + done;
    const std::size_t byte = offset % kAtomicBytes;
    const std::size_t count = std::min(kAtomicBytes - byte, data.size() - done);
    Store store{++sequence_,
                thread_,
                static_cast<std::uint8_t>(offset / kAtomicBytes),
                static_cast<std::uint8_t>(((1U << count) - 1U) << byte),
                streamed,
                {}};
    std::memcpy(store.bytes.data() + byte, data.data() + done, count);
    found->second.pending.push_back(store);
    done += count;
  }
  if (streamed) {
    streams_.push_back({line_address, sequence_, thread_});
  } else if (persistence_ == Persistence::kEadr) {
    settle(line_address, [](const Store& pending) { return !pending.streamed; });
  }
}

/// Makes the chosen stores of a line certain; older uncertain stores can then no longer show through them.
template <typename Chosen>
void DurabilityTracker::settle(Address address, Chosen chosen) {
  const auto found = lines_.find(address);
  if (found == lines_.end())
    return;
  Line& line = found->second;
  std::vector<Store> kept;
  for (const Store& store : line.pending) {
    if (!chosen(store)) {
      kept.push_back(store);
      continue;
    }
    apply(store, line.certain.data());
    for (Store& older : kept) {
      if (older.word == store.word)
        older.mask = static_cast<std::uint8_t>(older.mask & ~store.mask);
    }
  }
  // What no longer shows is forgotten, unless a clflush may still ask whether it was chosen.
  std::erase_if(kept, [this](const Store& store) { return store.mask == 0 && clflushes_.empty(); });
  if (kept.empty()) {
    lines_.erase(found);
  } else {
    line.pending = std::move(kept);
  }
}

void DurabilityTracker::flush(Address line, FlushKind kind) {
  if (!lines_.contains(line))
    return;
  const WriteBack write_back{line, sequence_, thread_};
  write_backs_.push_back(write_back);
  if (kind == FlushKind::kClflush)
    clflushes_.push_back(write_back);
}

void DurabilityTracker::fence() {
  const auto mine = [this](const WriteBack& entry) { return entry.thread == thread_; };
  for (const WriteBack& entry : streams_) {
    if (mine(entry))
      settle(entry.line, [this](const Store& s) { return s.streamed && s.thread == thread_; });
  }
  for (const WriteBack& entry : write_backs_) {
    if (mine(entry))
      settle(entry.line, [&entry](const Store& s) { return !s.streamed && s.sequence <= entry.sequence; });
  }
  std::erase_if(streams_, mine);
  std::erase_if(write_backs_, mine);
  std::erase_if(clflushes_, mine);
}

void DurabilityTracker::write_sector(Address sector, const std::byte* data, const std::byte* sector_before) {
  std::vector<SectorBytes>& versions = sectors_[sector];
  if (versions.empty())
    std::memcpy(versions.emplace_back().data(), sector_before, kSectorBytes);
  std::memcpy(versions.emplace_back().data(), data, kSectorBytes);
}

/// How many pending cached stores of its line a clflush wrote back.
std::size_t DurabilityTracker::prefix_of(const WriteBack& clflush) const {
  const auto found = lines_.find(clflush.line);
  if (found == lines_.end())
    return 0;
  return static_cast<std::size_t>(std::ranges::count_if(found->second.pending, [&](const Store& store) {
    return !store.streamed && store.sequence <= clflush.sequence;
  }));
}

bool DurabilityTracker::includes_later(const WriteBack& clflush,
                                       const std::map<Address, std::size_t>& prefixes) const {
  for (const auto& [address, line] : lines_) {
    std::size_t left = prefixes.at(address);
    for (const Store& store : line.pending) {
      if (store.streamed)
        continue;
      if (left-- == 0)
        break;
      if (store.thread == clflush.thread && store.sequence > clflush.sequence)
        return true;
    }
  }
  return false;
}

bool DurabilityTracker::legal(const std::map<Address, std::size_t>& prefixes) const {
  return std::ranges::all_of(clflushes_, [&](const WriteBack& clflush) {
    const auto found = prefixes.find(clflush.line);
    return found == prefixes.end() || found->second >= prefix_of(clflush) || !includes_later(clflush, prefixes);
  });
}

std::optional<std::vector<DurabilityTracker::Cell>> DurabilityTracker::cells(std::uint64_t limit) const {
  std::vector<Cell> result;
  std::uint64_t combinations = 1;
  const auto add = [&](Cell cell) {
    std::vector<Cell::Content> distinct;
    for (Cell::Content& content : cell.contents) {
      const bool seen = std::ranges::any_of(distinct, [&](const Cell::Content& other) {
        return other.bytes == content.bytes && (clflushes_.empty() || other.prefix == content.prefix);
      });
      if (!seen)
        distinct.push_back(std::move(content));
    }
    cell.contents = std::move(distinct);
    if (combinations > limit / cell.contents.size())
      return false;
    combinations *= cell.contents.size();
    result.push_back(std::move(cell));
    return true;
  };
  for (const auto& [address, line] : lines_) {
    const std::size_t cached = cached_in(line.pending);
    const std::size_t streamed = line.pending.size() - cached;
    if (streamed > kMostStreamed || (cached + 1) > (limit >> streamed))
      return std::nullopt;
    Cell cell{address, true, {}};
    for (std::uint64_t subset = 0; subset < (std::uint64_t{1} << streamed); ++subset) {
      for (std::size_t prefix = 0; prefix <= cached; ++prefix) {
        const auto bytes = replay(line, {prefix, subset});
        cell.contents.push_back({{bytes.begin(), bytes.end()}, prefix});
      }
    }
    if (!add(std::move(cell)))
      return std::nullopt;
  }
  for (const auto& [address, versions] : sectors_) {
    Cell cell{address, false, {}};
    for (const SectorBytes& version : versions)
      cell.contents.push_back({{version.begin(), version.end()}, 0});
    if (!add(std::move(cell)))
      return std::nullopt;
  }
  return result;
}

std::optional<std::vector<DurableImage>> DurabilityTracker::enumerate(std::uint64_t limit) const {
  const auto found = cells(limit);
  if (!found)
    return std::nullopt;
  std::vector<DurableImage> images;
  std::vector<std::size_t> choice(found->size(), 0);
  for (;;) {
    DurableImage image;
    std::map<Address, std::size_t> prefixes;
    for (std::size_t cell = 0; cell < found->size(); ++cell) {
      const Cell::Content& content = (*found)[cell].contents[choice[cell]];
      image.push_back({(*found)[cell].address, content.bytes});
      if ((*found)[cell].is_line)
        prefixes[(*found)[cell].address] = content.prefix;
    }
    // Several prefixes can give the same bytes; without a clflush they have been merged already.
    if (legal(prefixes) && (clflushes_.empty() || std::ranges::find(images, image) == images.end())) {
      images.push_back(std::move(image));
    }
    std::size_t cell = 0;
    while (cell < found->size() && ++choice[cell] == (*found)[cell].contents.size())
      choice[cell++] = 0;
    if (cell == found->size())
      return images;
  }
}

std::optional<std::uint64_t> DurabilityTracker::count(std::uint64_t limit) const {
  if (!clflushes_.empty()) {
    const auto images = enumerate(limit);
    return images ? std::optional<std::uint64_t>(images->size()) : std::nullopt;
  }
  const auto found = cells(limit);
  if (!found)
    return std::nullopt;
  std::uint64_t product = 1;
  for (const Cell& cell : *found)
    product *= cell.contents.size();
  return product;
}

DurableImage DurabilityTracker::sample(Random& random) const {
  std::map<Address, std::size_t> prefixes;
  for (const auto& [address, line] : lines_)
    prefixes[address] = random.below(cached_in(line.pending) + 1);
  // A clflush raises its line only by stores older than itself, so one pass from the newest to the oldest
  // suffices.
  for (auto clflush = clflushes_.rbegin(); clflush != clflushes_.rend(); ++clflush) {
    const auto found = prefixes.find(clflush->line);
    if (found != prefixes.end() && includes_later(*clflush, prefixes)) {
      found->second = std::max(found->second, prefix_of(*clflush));
    }
  }
  DurableImage image;
  for (const auto& [address, line] : lines_) {
    std::array<std::byte, kLineBytes> bytes = line.certain;
    std::size_t left = prefixes[address];
    for (const Store& store : line.pending) {
      const bool durable = store.streamed ? (random.next() & 1) != 0 : left > 0;
      if (!store.streamed && left > 0)
        --left;
      if (durable)
        apply(store, bytes.data());
    }
    image.push_back({address, {bytes.begin(), bytes.end()}});
  }
  for (const auto& [address, versions] : sectors_) {
    const SectorBytes& version = versions[random.below(versions.size())];
    image.push_back({address, {version.begin(), version.end()}});
  }
  return image;
}

WordState DurabilityTracker::word_state(Address address, const std::byte* current) const {
  const Address line_address = address & ~Address{kLineBytes - 1};
  const auto found = lines_.find(line_address);
  if (found == lines_.end())
    return WordState::kDurable;
  const std::size_t word = (address - line_address) / kAtomicBytes;
  const bool touched =
      std::ranges::any_of(found->second.pending, [&](const Store& s) { return s.word == word; });
  const bool same = std::memcmp(found->second.certain.data() + word * kAtomicBytes, current, kAtomicBytes) == 0;
  if (!touched && same)
    return WordState::kDurable;
  // Some choice of the pending stores may change the word even if the certain value equals the current one (A,
  // B, A).
  std::array<std::byte, kLineBytes> bytes = found->second.certain;
  bool always_current = same;
  for (const Store& store : found->second.pending) {
    if (store.word != word)
      continue;
    apply(store, bytes.data());
    always_current =
        always_current && std::memcmp(bytes.data() + word * kAtomicBytes, current, kAtomicBytes) == 0;
  }
  return always_current ? WordState::kDurable : WordState::kMaybe;
}

}  // namespace pmsim::memory
