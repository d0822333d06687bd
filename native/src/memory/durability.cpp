#include "pmsim/memory/durability.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "pmsim/core/error.hpp"

namespace pmsim::memory {

namespace {

constexpr std::size_t kMostFree = 20;  // 2^20 subsets of one line: beyond any useful limit

/// How many pending stores follow the prefix rule.
std::size_t ordered_in(const auto& pending) {
  return static_cast<std::size_t>(
      std::ranges::count_if(pending, [](const auto& store) { return store.is_ordered(); }));
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
  for (std::size_t index = 0; index < line.pending.size(); ++index) {
    if (choice[index])
      apply(line.pending[index], bytes.data());
  }
  return bytes;
}

DurabilityTracker::Segment& DurabilityTracker::segment() {
  if (thread_ >= segments_.size())
    segments_.resize(thread_ + 1);
  return segments_[thread_];
}

/// The line, which may have been certain so far.
DurabilityTracker::Line& DurabilityTracker::line_of(Address address, const std::byte* line_before) {
  const auto place = lines_.lower_bound(address);
  if (place != lines_.end() && place->first == address)
    return place->second;
  Lines::iterator made;
  if (spare_.empty()) {
    made = lines_.try_emplace(place, address);
  } else {
    spare_.back().key() = address;
    made = lines_.insert(place, std::move(spare_.back()));
    spare_.pop_back();
  }
  std::memcpy(made->second.certain.data(), line_before, kLineBytes);
  return made->second;
}

/// The line is certain.
void DurabilityTracker::drop(Lines::iterator line) {
  line->second.pending.clear();
  spare_.push_back(lines_.extract(line));
}

void DurabilityTracker::store(Address address, std::span<const std::byte> data, const std::byte* line_before,
                              bool streamed) {
  const Address line_address = address & ~Address{kLineBytes - 1};
  ensure(!data.empty() && address - line_address + data.size() <= kLineBytes, "a tracked store crosses a line");
  std::vector<Store>& pending = line_of(line_address, line_before).pending;
  Segment& now = segment();
  const bool sure = persistence_ == Persistence::kEadr && !streamed && !now.loose;
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
                !streamed && now.loose,
                sure,
                now.begin,
                {}};
    std::memcpy(store.bytes.data() + byte, data.data() + done, count);
    pending.push_back(store);
    done += count;
  }
  if (streamed) {
    streams_.push_back({line_address, sequence_, thread_});
  } else if (persistence_ == Persistence::kEadr) {
    now.lines.push_back(line_address);
  }
}

/// Makes the chosen stores of a line certain; older uncertain stores can then no longer show through them.
template <typename Chosen>
void DurabilityTracker::settle(Address address, Chosen chosen) {
  const auto found = lines_.find(address);
  if (found == lines_.end())
    return;
  Line& line = found->second;
  if (std::ranges::all_of(line.pending, chosen)) {  // nearly always
    drop(found);
    return;
  }
  std::size_t kept = 0;
  for (const Store& store : line.pending) {
    if (!chosen(store)) {
      line.pending[kept++] = store;
      continue;
    }
    apply(store, line.certain.data());
    for (Store& older : std::span(line.pending).first(kept)) {
      if (older.word == store.word)
        older.mask = static_cast<std::uint8_t>(older.mask & ~store.mask);
    }
  }
  line.pending.erase(line.pending.begin() + static_cast<std::ptrdiff_t>(kept), line.pending.end());
  // What no longer shows is forgotten, unless a clflush may still ask whether it was chosen.
  std::erase_if(line.pending, [this](const Store& store) { return store.mask == 0 && clflushes_.empty(); });
  if (line.pending.empty())
    drop(found);
}

void DurabilityTracker::flush(Address line, FlushKind kind) {
  if (persistence_ == Persistence::kEadr || !lines_.contains(line))
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
  begin_segment();
}

void DurabilityTracker::order() { begin_segment(); }

void DurabilityTracker::begin_segment() {
  Segment& now = segment();
  // With eADR the stores were delayed by nothing but the compiler, whose freedom ends here.
  for (const Address line : now.lines)
    settle(line, [this](const Store& store) { return !store.streamed && store.thread == thread_; });
  now.begin = sequence_;
  now.loose = false;
  now.lines.clear();
}

void DurabilityTracker::disorder() {
  Segment& now = segment();
  now.loose = true;
  // With eADR the stores before the missing point are sure no longer: later ones may have overtaken them.
  for (const Address address : now.lines) {
    const auto found = lines_.find(address);
    if (found == lines_.end())
      continue;
    for (Store& store : found->second.pending) {
      if (store.sure && store.thread == thread_) {
        store.sure = false;
        store.loose = true;
      }
    }
  }
}

void DurabilityTracker::write_sector(Address sector, const std::byte* data, const std::byte* sector_before) {
  std::vector<SectorBytes>& versions = sectors_[sector];
  if (versions.empty())
    std::memcpy(versions.emplace_back().data(), sector_before, kSectorBytes);
  std::memcpy(versions.emplace_back().data(), data, kSectorBytes);
}

bool DurabilityTracker::closed(const Line& line, const Choice& choice) {
  if (std::ranges::none_of(line.pending, &Store::loose))
    return true;  // every prefix is
  for (std::size_t later = 0; later < line.pending.size(); ++later) {
    const Store& store = line.pending[later];
    if (!choice[later] || store.streamed || store.sure)
      continue;
    for (std::size_t first = 0; first < later; ++first) {
      const Store& before = line.pending[first];
      if (!before.streamed && !choice[first] && (!store.loose || before.sequence <= store.after))
        return false;
    }
  }
  return true;
}

void DurabilityTracker::close(const Line& line, Choice& choice) {
  if (std::ranges::none_of(line.pending, &Store::loose))
    return;
  // From the newest: what it asks for is older, and asks in its turn.
  for (std::size_t later = line.pending.size(); later-- > 0;) {
    const Store& store = line.pending[later];
    if (!choice[later] || store.streamed || store.sure)
      continue;
    for (std::size_t first = 0; first < later; ++first) {
      const Store& before = line.pending[first];
      if (!before.streamed && (!store.loose || before.sequence <= store.after))
        choice[first] = true;
    }
  }
}

bool DurabilityTracker::complete(const WriteBack& clflush, const Choices& choices) const {
  const auto found = lines_.find(clflush.line);
  if (found == lines_.end())
    return true;
  const Line& line = found->second;
  const Choice& choice = choices.at(clflush.line);
  for (std::size_t index = 0; index < line.pending.size(); ++index) {
    const Store& store = line.pending[index];
    if (!store.streamed && store.sequence <= clflush.sequence && !choice[index])
      return false;
  }
  return true;
}

bool DurabilityTracker::includes_later(const WriteBack& clflush, const Choices& choices) const {
  for (const auto& [address, line] : lines_) {
    const Choice& choice = choices.at(address);
    for (std::size_t index = 0; index < line.pending.size(); ++index) {
      const Store& store = line.pending[index];
      if (!store.streamed && choice[index] && store.thread == clflush.thread &&
          store.sequence > clflush.sequence)
        return true;
    }
  }
  return false;
}

bool DurabilityTracker::legal(const Choices& choices) const {
  return std::ranges::all_of(clflushes_, [&](const WriteBack& clflush) {
    return complete(clflush, choices) || !includes_later(clflush, choices);
  });
}

void DurabilityTracker::keep_distinct(UncertainCell& cell) const {
  std::vector<UncertainCell::Content> distinct;
  for (UncertainCell::Content& content : cell.contents) {
    const bool seen = std::ranges::any_of(distinct, [&](const UncertainCell::Content& other) {
      return other.bytes == content.bytes && (clflushes_.empty() || other.choice == content.choice);
    });
    if (!seen)
      distinct.push_back(std::move(content));
  }
  cell.contents = std::move(distinct);
}

std::optional<UncertainCell> DurabilityTracker::cell_of(Address address, const Line& line,
                                                        std::uint64_t limit) const {
  const std::size_t ordered = ordered_in(line.pending);
  const auto free =
      static_cast<std::size_t>(std::ranges::count_if(line.pending, [](const Store& s) { return s.is_free(); }));
  if (free > kMostFree || (ordered + 1) > (limit >> free))
    return std::nullopt;
  UncertainCell cell{address, true, {}};
  Choice choice(line.pending.size());
  for (std::uint64_t subset = 0; subset < (std::uint64_t{1} << free); ++subset) {
    for (std::size_t prefix = 0; prefix <= ordered; ++prefix) {
      std::size_t bit = 0;
      std::size_t left = prefix;
      for (std::size_t index = 0; index < choice.size(); ++index) {
        if (line.pending[index].is_free()) {
          choice[index] = (subset >> bit++ & 1) != 0;
        } else if (line.pending[index].sure) {
          choice[index] = true;
        } else {
          choice[index] = left > 0;
          left -= left > 0 ? 1 : 0;
        }
      }
      if (!closed(line, choice))
        continue;
      const auto bytes = replay(line, choice);
      cell.contents.push_back({{bytes.begin(), bytes.end()}, is_coupled() ? choice : Choice()});
    }
  }
  keep_distinct(cell);
  return cell;
}

UncertainCell DurabilityTracker::cell_of(Address address, const std::vector<SectorBytes>& versions) {
  UncertainCell cell{address, false, {}};
  for (const SectorBytes& version : versions)
    cell.contents.push_back({{version.begin(), version.end()}, {}});
  return cell;
}

std::optional<UncertainCell> DurabilityTracker::cell(Address address, std::uint64_t limit) const {
  if (const auto line = lines_.find(address); line != lines_.end())
    return cell_of(address, line->second, limit);
  if (const auto sector = sectors_.find(address); sector != sectors_.end())
    return cell_of(address, sector->second);
  return std::nullopt;
}

std::optional<std::vector<UncertainCell>> DurabilityTracker::cells(std::uint64_t limit) const {
  std::vector<UncertainCell> result;
  std::uint64_t combinations = 1;
  const auto add = [&](UncertainCell cell) {
    if (combinations > limit / cell.contents.size())
      return false;
    combinations *= cell.contents.size();
    result.push_back(std::move(cell));
    return true;
  };
  for (const auto& [address, line] : lines_) {
    std::optional<UncertainCell> cell = cell_of(address, line, limit);
    if (!cell || !add(std::move(*cell)))
      return std::nullopt;
  }
  for (const auto& [address, versions] : sectors_) {
    UncertainCell cell = cell_of(address, versions);
    keep_distinct(cell);
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
    Choices choices;
    for (std::size_t cell = 0; cell < found->size(); ++cell) {
      const UncertainCell::Content& content = (*found)[cell].contents[choice[cell]];
      image.push_back({(*found)[cell].address, content.bytes});
      if ((*found)[cell].is_line)
        choices[(*found)[cell].address] = content.choice;
    }
    // Several choices can give the same bytes; without a clflush they have been merged already.
    if (legal(choices) && (clflushes_.empty() || std::ranges::find(images, image) == images.end())) {
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
  for (const UncertainCell& cell : *found)
    product *= cell.contents.size();
  return product;
}

void DurabilityTracker::draw(const Line& line, Random& random, Choice& choice) {
  choice.assign(line.pending.size(), false);
  std::size_t left = random.below(ordered_in(line.pending) + 1);
  for (std::size_t index = 0; index < choice.size(); ++index) {
    if (line.pending[index].is_free()) {
      choice[index] = (random.next() & 1) != 0;
    } else if (line.pending[index].sure) {
      choice[index] = true;
    } else {
      choice[index] = left > 0;
      left -= left > 0 ? 1 : 0;
    }
  }
  close(line, choice);
}

void DurabilityTracker::sample_corners(Random& random, DurableImage& image) const {
  if (is_coupled()) {
    image = sample(random);
    return;
  }
  image.resize(lines_.size() + sectors_.size());
  // Of 16 cells, how many are wholly lost and how many wholly durable; the rest is drawn evenly.
  constexpr std::array<std::array<std::uint64_t, 2>, 4> kLeans{{{0, 0}, {14, 1}, {1, 14}, {5, 5}}};
  const auto [lost, durable] = kLeans[random.below(kLeans.size())];
  std::size_t cell = 0;
  Choice choice;
  for (const auto& [address, line] : lines_) {
    const std::uint64_t luck = random.below(16);
    if (luck < lost + durable) {
      choice.assign(line.pending.size(), luck >= lost);
      for (std::size_t index = 0; index < choice.size(); ++index)
        choice[index] = choice[index] || line.pending[index].sure;
    } else {
      draw(line, random, choice);
    }
    const auto bytes = replay(line, choice);
    image[cell].address = address;
    image[cell++].bytes.assign(bytes.begin(), bytes.end());
  }
  for (const auto& [address, versions] : sectors_) {
    const std::uint64_t luck = random.below(16);
    const std::size_t version = luck < lost             ? 0
                                : luck < lost + durable ? versions.size() - 1
                                                        : random.below(versions.size());
    image[cell].address = address;
    image[cell++].bytes.assign(versions[version].begin(), versions[version].end());
  }
}

void DurabilityTracker::clear() {
  while (!lines_.empty())
    drop(lines_.begin());
  sectors_.clear();
  write_backs_.clear();
  streams_.clear();
  clflushes_.clear();
  segments_.clear();
}

DurableImage DurabilityTracker::sample(Random& random) const {
  Choices choices;
  for (const auto& [address, line] : lines_) {
    draw(line, random, choices[address]);
  }
  // A clflush raises its line only by stores older than itself, so one pass from the newest to the oldest
  // suffices.
  for (auto clflush = clflushes_.rbegin(); clflush != clflushes_.rend(); ++clflush) {
    const auto found = lines_.find(clflush->line);
    if (found == lines_.end() || !includes_later(*clflush, choices))
      continue;
    const Line& line = found->second;
    for (std::size_t index = 0; index < line.pending.size(); ++index) {
      if (!line.pending[index].streamed && line.pending[index].sequence <= clflush->sequence)
        choices[clflush->line][index] = true;
    }
  }
  DurableImage image;
  for (const auto& [address, line] : lines_) {
    const auto bytes = replay(line, choices.at(address));
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
  // B, A). What precedes a sure store of the whole word no longer counts.
  std::array<std::byte, kLineBytes> bytes = found->second.certain;
  bool always_current = same;
  bool single = true;  // nothing uncertain so far
  for (const Store& store : found->second.pending) {
    if (store.word != word)
      continue;
    apply(store, bytes.data());
    single = store.sure && (single || store.mask == 0xff);
    const bool is_current = std::memcmp(bytes.data() + word * kAtomicBytes, current, kAtomicBytes) == 0;
    always_current = is_current && (single || always_current);
  }
  return always_current ? WordState::kDurable : WordState::kMaybe;
}

}  // namespace pmsim::memory
