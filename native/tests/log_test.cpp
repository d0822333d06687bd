#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "pmsim/blocks/log/any.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/memory/host_memory.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace pmsim::blocks::log {
namespace {

using memory::Medium;
using memory::Persistence;
using memory::SimMemory;

using Bytes = std::vector<std::byte>;
using Entries = std::vector<Bytes>;

struct Variant {
  std::string algorithm;
  Layout layout;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const std::string_view algorithm : kAlgorithms) {
    for (const Layout layout : {Layout::kNaive, Layout::kPadded, Layout::kDramTail}) {
      if (has_entries(algorithm) || layout == Layout::kNaive)
        all.push_back({std::string(algorithm), layout});
    }
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Variant>& info) {
  std::string name =
      info.param.algorithm + "_" + std::string(kLayouts[static_cast<std::size_t>(info.param.layout)]);
  std::ranges::replace(name, '-', '_');
  return name;
}

Bytes random_bytes(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(random.next());
  return bytes;
}

/// One log on a memory, with what it should contain.
class Log {
 public:
  Log(const Variant& variant, std::uint64_t bytes, std::uint32_t group = 1, std::uint32_t fields = 4,
      Persistence persistence = Persistence::kAdr)
      : variant_(variant), dense_(!has_entries(variant.algorithm)), memory_({.persistence = persistence}) {
    place_ = allocate(memory_, bytes);
    options_ = {.layout = variant.layout, .group_commit = group, .fields = fields, .key = mix64(7)};
    log_ = AnyLog::create(memory_, variant.algorithm, place_, options_);
  }

  static Place allocate(SimMemory& memory, std::uint64_t bytes) {
    Place place{.bytes = bytes, .buffer_bytes = 4096};
    place.base = memory.allocate(Medium::kPmem, bytes);
    place.buffer = memory.allocate(Medium::kDram, place.buffer_bytes);
    return place;
  }

  SimMemory& memory() { return memory_; }
  AnyLog& log() { return *log_; }
  const Place& place() const { return place_; }
  const Options& options() const { return options_; }

  static Entries contents(SimMemory& memory, const AnyLog& log) {
    Entries found;
    log.for_each(memory, [&](Lsn, std::span<const std::byte> payload) {
      found.emplace_back(payload.begin(), payload.end());
    });
    return found;
  }
  std::optional<AnyLog> recover(SimMemory& memory) const {
    return AnyLog::recover(memory, variant_.algorithm, place_, options_);
  }
  /// pmemlog has no entries: what is expected of it is one stretch of bytes.
  Entries as_read(const Entries& entries) const {
    if (!dense_)
      return entries;
    Bytes all;
    for (const Bytes& entry : entries)
      all.insert(all.end(), entry.begin(), entry.end());
    return all.empty() ? Entries{} : Entries{all};
  }

 private:
  Variant variant_;
  bool dense_;
  SimMemory memory_;
  Place place_;
  Options options_;
  std::optional<AnyLog> log_;
};

class EveryLog : public ::testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Variants, EveryLog, ::testing::ValuesIn(variants()), name_of);

TEST_P(EveryLog, GivesBackWhatWasAppendedOverManyTruncationsAndRestarts) {
  // 3,000 random steps on 8 KiB: the space is passed over about a hundred times.
  Log subject(GetParam(), 8192, 1, 4, Persistence::kUntracked);
  SimMemory& memory = subject.memory();
  AnyLog log = subject.log();
  Random random(mix64(1));
  Entries expected;
  int full = 0;
  for (int step = 0; step < 3'000; ++step) {
    const std::uint64_t dice = random.below(100);
    if (dice < 2) {
      std::optional<AnyLog> again = subject.recover(memory);
      ASSERT_TRUE(again.has_value());
      log = std::move(*again);
    } else if (dice < 4) {
      log.truncate(memory);
      expected.clear();
    } else {
      const Bytes payload = random_bytes(random, random.below(400));
      const Lsn before = log.tail();
      if (log.fits(payload.size())) {
        EXPECT_EQ(log.append(memory, payload), before);
        expected.push_back(payload);
      } else {
        ++full;
        EXPECT_THROW(log.append(memory, payload), LogFull);
        EXPECT_EQ(log.tail(), before);
        log.truncate(memory);
        expected.clear();
      }
    }
    if (step % 16 == 0) {
      ASSERT_EQ(Log::contents(memory, log), subject.as_read(expected)) << "step " << step;
    }
  }
  EXPECT_GT(full, 20);
}

TEST_P(EveryLog, TakesEveryEntrySizeUpTo600Bytes) {
  Log subject(GetParam(), 1 << 20, 1, 4, Persistence::kUntracked);
  Random random(mix64(2));
  Entries expected;
  for (std::size_t size = 0; size <= 600; ++size) {
    expected.push_back(random_bytes(random, size));
    subject.log().append(subject.memory(), expected.back());
  }
  const std::optional<AnyLog> again = subject.recover(subject.memory());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(Log::contents(subject.memory(), *again), subject.as_read(expected));
}

TEST_P(EveryLog, KeepsEntriesOfZerosAndOfOnes) {
  Log subject(GetParam(), 16384, 1, 4, Persistence::kUntracked);
  Entries expected;
  for (const std::size_t size : {0, 8, 24, 64, 160, 0, 504, 8}) {
    expected.emplace_back(size, std::byte{0});
    subject.log().append(subject.memory(), expected.back());
    expected.emplace_back(size, std::byte{0xff});
    subject.log().append(subject.memory(), expected.back());
  }
  const std::optional<AnyLog> again = subject.recover(subject.memory());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(Log::contents(subject.memory(), *again), subject.as_read(expected));
}

/// Runs a small program and at every persistence step looks at all durable images: what is acknowledged is
/// there, what is in flight is there whole or not at all, in order. On images of every `nested`-th step the log
/// is used further and crashes again.
class CrashRun {
 public:
  CrashRun(const Variant& variant, std::uint32_t group, std::uint64_t seed)
      : subject_(variant, 1024, group, 2), random_(mix64(seed)), group_(group) {}

  void run(int operations, int nested) {
    nested_ = nested;
    subject_.memory().on_persistence_step([this] { look(); });
    for (int i = 0; i < operations; ++i)
      operation();
    subject_.memory().on_persistence_step({});
  }
  [[nodiscard]] std::uint64_t images() const { return images_; }
  [[nodiscard]] std::uint64_t second_crashes() const { return second_crashes_; }

 private:
  /// Words with 32 set bits each: an old word in place of a new one does not change any count of bits.
  Bytes payload() {
    Bytes bytes(8 * random_.below(9));
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      const std::uint64_t half = random_.next() & 0xffff'ffff;
      const std::uint64_t word = half | (~half << 32);
      std::memcpy(bytes.data() + at, &word, 8);
    }
    return bytes;
  }

  void operation() {
    AnyLog& log = subject_.log();
    const Bytes bytes = payload();
    if (random_.below(8) == 0 || !log.fits(bytes.size())) {
      log.commit(subject_.memory());
      pending_ = 0;
      acknowledged_ = appended_.size();
      truncating_ = true;
      log.truncate(subject_.memory());
      truncating_ = false;
      appended_.clear();
      acknowledged_ = 0;
      return;
    }
    appended_.push_back(bytes);
    log.append(subject_.memory(), bytes);
    if (++pending_ == group_) {
      pending_ = 0;
      acknowledged_ = appended_.size();
    }
  }

  /// Whether `found` is a prefix of what was appended and holds at least what was acknowledged.
  void expect_promise(const Entries& found, const Entries& appended, std::size_t acknowledged, bool truncating,
                      const char* when) {
    if (truncating && found.empty())
      return;
    for (std::size_t count = truncating ? appended.size() : acknowledged; count <= appended.size(); ++count) {
      if (found == subject_.as_read({appended.begin(), appended.begin() + static_cast<std::ptrdiff_t>(count)}))
        return;
    }
    FAIL() << when << ": " << found.size() << " entries found, " << acknowledged << " acknowledged, "
           << appended.size() << " appended";
  }

  void look() {
    ++steps_;
    const auto images = subject_.memory().durability().enumerate(40);
    std::vector<memory::DurableImage> chosen;
    if (images) {
      chosen = *images;
    } else {
      for (int i = 0; i < 12; ++i)
        chosen.push_back(subject_.memory().durability().sample(random_));
    }
    for (const memory::DurableImage& image : chosen) {
      ++images_;
      SimMemory crashed = subject_.memory().crash(image);
      std::optional<AnyLog> log = subject_.recover(crashed);
      ASSERT_TRUE(log.has_value());
      const Entries found = Log::contents(crashed, *log);
      expect_promise(found, appended_, acknowledged_, truncating_, "after a crash");
      if (::testing::Test::HasFailure())
        return;
      if (images_ % static_cast<std::uint64_t>(nested_) == 0)
        use_further(crashed, *log, found);
    }
  }

  /// Appends over whatever the torn append has left, and crashes again.
  void use_further(SimMemory& memory, AnyLog& log, Entries entries) {
    std::size_t acknowledged = entries.size();
    memory.on_persistence_step([&] {
      for (int i = 0; i < 4; ++i) {
        ++second_crashes_;
        SimMemory again = memory.crash(memory.durability().sample(random_));
        std::optional<AnyLog> second = subject_.recover(again);
        ASSERT_TRUE(second.has_value());
        expect_promise(Log::contents(again, *second), entries, acknowledged, false, "after a second crash");
      }
    });
    for (int i = 0; i < 2; ++i) {
      const Bytes bytes = payload();
      if (!log.fits(bytes.size()))
        break;
      entries.push_back(bytes);
      log.append(memory, bytes);
      if (group_ == 1)
        acknowledged = entries.size();
    }
    log.commit(memory);
    memory.on_persistence_step({});
  }

  Log subject_;
  Random random_;
  std::uint32_t group_;
  int nested_ = 1;
  Entries appended_;
  std::size_t acknowledged_ = 0;
  std::uint32_t pending_ = 0;
  bool truncating_ = false;
  std::uint64_t steps_ = 0;
  std::uint64_t images_ = 0;
  std::uint64_t second_crashes_ = 0;
};

TEST_P(EveryLog, KeepsItsPromiseInEveryDurableImage) {
  CrashRun crash(GetParam(), 1, 11);
  crash.run(60, 10);
  EXPECT_GT(crash.images(), 500U);
  EXPECT_GT(crash.second_crashes(), 300U);
}

TEST_P(EveryLog, KeepsItsPromiseForGroupsOfThree) {
  CrashRun crash(GetParam(), 3, 12);
  crash.run(60, 10);
  EXPECT_GT(crash.images(), 500U);
  EXPECT_GT(crash.second_crashes(), 300U);
}

/// Puts an entry of `payload` behind the tail as a crash may leave it: only the words named are durable.
class TornEntry : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 1024;

  SimMemory memory{{}};
  Place place = Log::allocate(memory, kBytes);

  template <typename Algorithm>
  std::size_t entries_after(Algorithm& log, const Bytes& payload, std::uint64_t lost_words,
                            const Options& options = {}) {
    const Space space(place.base + FileHeader::kBytes, log.capacity());
    const Lsn at = log.tail();
    const std::uint64_t words = log.footprint(payload.size()) / 8;
    std::vector<std::uint64_t> before(words);
    for (std::uint64_t i = 0; i < words; ++i)
      before[i] = space.word(memory, at + 8 * i);
    log.append(memory, payload);
    for (std::uint64_t i = 0; i < words; ++i) {
      if ((lost_words >> i & 1) != 0)
        space.put_word(memory, at + 8 * i, before[i]);
    }
    auto found = Algorithm::recover(memory, place, options);
    std::size_t count = 0;
    found->for_each(memory, [&](Lsn, std::span<const std::byte>) { ++count; });
    return count;
  }
};

TEST_F(TornEntry, PopLogTellsAnEntryOfZerosFromSpaceNeverWritten) {
  PopLog log = PopLog::create(memory, place, {});
  EXPECT_EQ(entries_after(log, Bytes(40), 0), 1U);
}

TEST_F(TornEntry, PopLogSeesEveryMissingWordThatHasABit) {
  // Seven words: LSN, length and count, five of payload, of which the last is zero and cannot be missed.
  Bytes payload(40, std::byte{1});
  std::memset(payload.data() + 32, 0, 8);
  for (std::uint64_t lost = 0; lost < 128; ++lost) {
    memory = SimMemory{{}};
    place = Log::allocate(memory, kBytes);
    PopLog log = PopLog::create(memory, place, {});
    EXPECT_EQ(entries_after(log, payload, lost), (lost & 63) == 0 ? 1U : 0U) << lost;
  }
}

TEST_F(TornEntry, RawlSeesEveryMissingWordInBothPasses) {
  const Bytes payload(40);
  for (const int pass : {1, 2}) {
    for (std::uint64_t lost = 0; lost < 256; ++lost) {
      memory = SimMemory{{}};
      place = Log::allocate(memory, kBytes);
      RawlLog log = RawlLog::create(memory, place, {});
      const std::size_t entries = log.capacity() / log.footprint(payload.size());
      for (std::size_t i = 0; pass == 2 && i < entries; ++i)
        log.append(memory, payload);
      log.truncate(memory);
      EXPECT_EQ(entries_after(log, payload, lost), lost == 0 ? 1U : 0U) << "pass " << pass << ", lost " << lost;
    }
  }
}

TEST_F(TornEntry, ClassicIsNotFooledByOldPayloadThatSpellsAnLsn) {
  // Every payload word of the first pass is the LSN of the first entry of the second, whose footer is lost:
  // without the key the old word in its place is taken for it.
  for (const std::uint64_t key : {std::uint64_t{0}, mix64(3)}) {
    memory = SimMemory{{}};
    place = Log::allocate(memory, kBytes);
    const Options options{.layout = Layout::kNaive, .key = key};
    ClassicLog log = ClassicLog::create(memory, place, options);
    const std::vector<std::uint64_t> words(5, 2 * log.capacity());
    while (log.fits(40))
      log.append(memory, std::as_bytes(std::span(words)));
    log.truncate(memory);
    ASSERT_EQ(log.tail(), words[0]);
    EXPECT_EQ(entries_after(log, Bytes(8), 1 << 3, options), key == 0 ? 1U : 0U);
  }
}

TEST(LogSizes, AreThoseOfThePaper) {
  SimMemory memory{{}};
  const Place place = Log::allocate(memory, 1 << 16);
  const auto footprint = [&]<typename Algorithm>(std::type_identity<Algorithm>, Layout layout,
                                                 std::uint64_t payload) {
    memory.store<std::uint64_t>(place.base, 0);  // unformatted again
    return Algorithm::create(memory, place, {.layout = layout}).footprint(payload);
  };
  for (std::uint64_t payload = 8; payload <= 1200; payload += 8) {
    const auto naive = Layout::kNaive, padded = Layout::kPadded;
    const std::uint64_t pop = footprint(std::type_identity<PopLog>{}, naive, payload);
    const std::uint64_t rawl = footprint(std::type_identity<RawlLog>{}, naive, payload);
    // One validity bit for 63 bits: a word more, two from 512 bytes on, three from 1016.
    EXPECT_EQ(rawl - pop, payload < 512 ? 8U : payload < 1016 ? 16U : 24U) << payload;
    // Padding: below one line, below two for Classic (footnote 13).
    const std::uint64_t classic = footprint(std::type_identity<ClassicLog>{}, naive, payload);
    EXPECT_LT(footprint(std::type_identity<PopLog>{}, padded, payload) - pop, 64U);
    EXPECT_LT(footprint(std::type_identity<RawlLog>{}, padded, payload) - rawl, 64U);
    EXPECT_LT(footprint(std::type_identity<ClassicLog>{}, padded, payload) - classic, 128U);
    EXPECT_EQ(footprint(std::type_identity<HeaderLog>{}, padded, payload),
              footprint(std::type_identity<PopLog>{}, padded, payload));
  }
}

TEST(LogErrors, AreClear) {
  SimMemory memory{{}};
  const Place place = Log::allocate(memory, 4096);
  EXPECT_THROW(static_cast<void>(PopLog::create(memory, {.base = place.base, .bytes = 128}, {})), ConfigError);
  EXPECT_THROW(static_cast<void>(PopLog::create(memory, place, {.group_commit = 0})), ConfigError);
  EXPECT_THROW(static_cast<void>(HeaderLog::create(memory, place, {.fields = 0})), ConfigError);
  EXPECT_THROW(static_cast<void>(PmemLog::create(memory, place, {})), ConfigError);
  EXPECT_THROW(static_cast<void>(AnyLog::create(memory, "poploq", place, {})), ConfigError);
  EXPECT_THROW(static_cast<void>(layout_named("dense")), ConfigError);
  EXPECT_FALSE(PopLog::recover(memory, place, {}).has_value());  // nothing has been created
  PopLog log = PopLog::create(memory, place, {});
  EXPECT_THROW(static_cast<void>(RawlLog::recover(memory, place, {})), ConfigError);
  EXPECT_THROW(static_cast<void>(PopLog::recover(memory, place, {.layout = Layout::kNaive})), ConfigError);
  try {
    log.append(memory, Bytes(5000));
    FAIL() << "it fits";
  } catch (const LogFull& error) {
    EXPECT_STREQ(
        error.what(),
        "the log is full: the entry needs 5056 bytes, 4032 of 4032 are free; truncate the log or create "
        "it larger");
  }
}

/// Nothing but the size says where these logs end: a damaged one is refused, not believed.
TEST(LogErrors, ASizeBeyondTheLogIsDamage) {
  SimMemory memory{{}};
  const Place place = Log::allocate(memory, 4096);
  const auto refuses = [&]<typename Algorithm>(std::type_identity<Algorithm>, const Options& options,
                                               std::uint64_t size) {
    memory.store<std::uint64_t>(place.base, 0);  // unformatted again
    Algorithm log = Algorithm::create(memory, place, options);
    log.append(memory, Bytes(8));
    const Lsn most = log.head() + log.capacity();
    memory.store<std::uint64_t>(place.base + FileHeader::kBytes, most);
    EXPECT_EQ(Algorithm::recover(memory, place, options)->tail(), most);  // full, but possible
    memory.store<std::uint64_t>(place.base + FileHeader::kBytes, size == 0 ? most + 8 : size);
    EXPECT_THROW(static_cast<void>(Algorithm::recover(memory, place, options)), ConfigError);
  };
  for (const std::uint64_t size : {std::uint64_t{0}, ~std::uint64_t{7}}) {
    refuses(std::type_identity<PmemLog>{}, {.layout = Layout::kNaive}, size);
    refuses(std::type_identity<HeaderLog>{}, {.layout = Layout::kPadded}, size);
  }
  refuses(std::type_identity<HeaderLog>{}, {.layout = Layout::kPadded}, 4040);  // in the middle of a line
}

TEST(LogErrors, AHeadWhereNothingCanBeginIsDamage) {
  SimMemory memory{{}};
  const Place place = Log::allocate(memory, 4096);
  constexpr std::uint64_t kHead = 16;
  for (const auto& [layout, apart] : {std::pair(Layout::kNaive, 4), std::pair(Layout::kPadded, 8)}) {
    memory.store<std::uint64_t>(place.base, 0);  // unformatted again
    const PopLog log = PopLog::create(memory, place, {.layout = layout});
    for (const Lsn head : {log.head() + static_cast<Lsn>(apart), log.head() - kLineBytes}) {
      memory.store<std::uint64_t>(place.base + kHead, head);
      EXPECT_THROW(static_cast<void>(PopLog::recover(memory, place, {.layout = layout})), ConfigError);
    }
  }
}

}  // namespace
}  // namespace pmsim::blocks::log
