#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pmsim/blocks/inplace/chained_read.hpp"
#include "pmsim/blocks/inplace/fam_codec.hpp"
#include "pmsim/blocks/inplace/famb.hpp"
#include "pmsim/blocks/inplace/record.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::inplace {

/// Failure-atomic memory: in-place updates with a single persistency barrier (van Renen et al., Building blocks
/// for persistent memory, VLDB Journal 29, 2020, sec. 3.4.3 and appendix A; the format is in fam_codec.hpp).
///
/// A record is fambs_of(bytes) FAMBs from a line boundary on; fresh zero bytes are a record of zeros.
///
/// Durable when:
///  - update() stores each FAMB whole and returns behind the barrier: then every FAMB has the new version.
///  - Before that any subset of them may be durable, whatever its order. Each has the version v of the value
///  before
///    or v + 1 (mod 4) with the value before as its old one, so the record can be rolled back.
///  - recover() makes the value before the interrupted update durable. It has to run before the next update: a
///  second
///    one over a half-durable first would make versions agree that belong to different values.
///
/// Invariant: whenever no update is in flight, all versions of a record are equal and durable.
/// One writer at a time per record.
class Fam {
 public:
  static constexpr std::array kNames{Named{"fam", "failure-atomic memory, computed with AVX2"},
                                     Named{"fam-scalar", "failure-atomic memory, one FAMB after the other"}};
  static constexpr std::array<std::size_t, 4> kCheckedSizes{16, 32, 64, 128};
  static constexpr memory::Site kUpdateFlush = 540;
  static constexpr memory::Site kUpdateFence = 541;
  static constexpr memory::Site kRollBackFlush = 542;
  static constexpr memory::Site kRollBackFence = 543;
  static constexpr std::array kSites{
      SiteInfo{kUpdateFlush, "fam update: write the FAMBs back"},
      SiteInfo{kUpdateFence, "fam update: the persistency barrier"},
      SiteInfo{kRollBackFlush, "fam recovery: write the rolled back FAMBs back"},
      SiteInfo{kRollBackFence, "fam recovery: barrier before the next update"},
  };

  /// What recover() found.
  struct Recovery {
    std::uint32_t rolled_back = 0;  ///< FAMBs that carried the interrupted update
    bool damaged = false;           ///< versions that no crash leaves behind: the record was not touched
  };

  /// `bytes` of user data, a multiple of 8 up to 1024. `path` is what the simulated CPU computes with, and what
  /// this one uses where it can; the bytes are the same. Throws ConfigError for a bad size.
  explicit Fam(std::size_t bytes, FamPath path = FamPath::kAvx2) : path_(path) {
    require_record_bytes(bytes);
    words_ = bytes / sizeof(std::uint32_t);
    fambs_ = fambs_of(bytes);
  }
  /// Under the name with this place in kNames.
  [[nodiscard]] static Fam named(std::size_t bytes, std::size_t name) {
    return Fam(bytes, name == 0 ? FamPath::kAvx2 : FamPath::kScalar);
  }

  [[nodiscard]] std::size_t value_bytes() const noexcept { return words_ * sizeof(std::uint32_t); }
  /// Bytes that a record occupies (Table 3: ceil(8 n / 31) * 8).
  [[nodiscard]] std::size_t record_bytes() const noexcept { return fambs_ * sizeof(Famb); }
  /// From one record to the next: whole lines.
  [[nodiscard]] std::size_t stride() const noexcept { return whole_lines(record_bytes()); }

  template <memory::Memory M>
  void update(M& memory, memory::Address record, std::span<const std::byte> value) const {
    ensure(value.size() == value_bytes() && record % memory::kLineBytes == 0,
           "a FAM record or value is misplaced");
    Fambs fambs;
    Words words;
    const std::span<Famb> all(fambs.data(), fambs_);
    std::memcpy(words.data(), value.data(), value.size());
    // Into registers first: no half-made FAMB may reach memory.
    memory.read(record, std::as_writable_bytes(all));
    fam_advance(all, {words.data(), words_}, path_);
    memory.compute(0, kFamAdvanceInstructions.of(words_, path_));
    memory.write(record, std::as_bytes(all));
    memory.flush(record, record_bytes(), memory::FlushKind::kClwb, kUpdateFlush);
    memory.sfence(kUpdateFence);
  }

  template <memory::Memory M>
  void read(M& memory, memory::Address record, std::span<std::byte> into,
            Reads reads = Reads::kIndependent) const {
    ensure(into.size() == value_bytes(), "a FAM value has another size");
    Fambs fambs;
    Words words;
    const std::span<Famb> all(fambs.data(), fambs_);
    read_bytes(memory, record, std::as_writable_bytes(all), reads);
    fam_decode(all, {words.data(), words_}, path_);
    memory.compute(0, kFamDecodeInstructions.of(words_, path_));
    std::memcpy(into.data(), words.data(), into.size());
  }

  /// Rolls an interrupted update back. A FAMB that has been rolled back matches the others, so a crash during
  /// recovery and any number of further recoveries roll each FAMB back at most once.
  template <memory::Memory M>
  Recovery recover(M& memory, memory::Address record) const {
    Fambs fambs;
    memory.read(record, std::as_writable_bytes(std::span(fambs.data(), fambs_)));
    std::uint32_t seen = 0;  // bit v: some FAMB has version v
    for (std::size_t index = 0; index < fambs_; ++index)
      seen |= 1U << famb_version(fambs[index]);
    Recovery recovery;
    std::uint32_t advanced = kVersions;
    for (std::uint32_t version = 0; version < kVersions; ++version) {
      const std::uint32_t next = (version + 1) % kVersions;
      if (seen == (1U << version))
        return recovery;
      if (seen == (1U << version | 1U << next))
        advanced = next;
    }
    if (advanced == kVersions) {
      recovery.damaged = true;
      return recovery;
    }
    for (std::size_t index = 0; index < fambs_; ++index) {
      if (famb_version(fambs[index]) != advanced)
        continue;
      memory.template store<Famb>(record + index * sizeof(Famb), famb_roll_back(fambs[index]));
      ++recovery.rolled_back;
    }
    memory.flush(record, record_bytes(), memory::FlushKind::kClwb, kRollBackFlush);
    memory.sfence(kRollBackFence);
    return recovery;
  }

 private:
  static constexpr std::uint32_t kVersions = 1U << kFambVersionBits;
  using Fambs = std::array<Famb, fambs_of(kMostBytes)>;
  using Words = std::array<std::uint32_t, kMostBytes / sizeof(std::uint32_t)>;

  std::size_t words_ = 0;
  std::size_t fambs_ = 0;
  FamPath path_;
};

}  // namespace pmsim::blocks::inplace
