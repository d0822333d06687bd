#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "pmsim/blocks/inplace/chained_read.hpp"
#include "pmsim/blocks/inplace/record.hpp"
#include "pmsim/blocks/site.hpp"

namespace pmsim::blocks::inplace {

/// Eight bytes, which need no algorithm: one store and one persistency barrier (van Renen et al., Building
/// blocks for persistent memory, VLDB Journal 29, 2020, sec. 3.4).
///
/// Durable when update() returns; before that the word is the old or the new one. Nothing to recover.
class AtomicWord {
 public:
  static constexpr std::array kNames{Named{"word", "eight bytes that the hardware writes atomically"}};
  static constexpr std::array<std::size_t, 1> kCheckedSizes{memory::kAtomicBytes};
  static constexpr memory::Site kUpdateFlush = 510;
  static constexpr memory::Site kUpdateFence = 511;
  static constexpr std::array kSites{
      SiteInfo{kUpdateFlush, "word update: write the word back"},
      SiteInfo{kUpdateFence, "word update: the persistency barrier"},
  };

  /// Throws ConfigError for any size but 8: larger values are torn.
  explicit AtomicWord(std::size_t bytes = memory::kAtomicBytes) {
    if (bytes != memory::kAtomicBytes)
      throw ConfigError("update_size: " + std::to_string(bytes) +
                        " B are not written atomically by the hardware; choose 8 B, or another algorithm");
  }

  [[nodiscard]] std::size_t value_bytes() const noexcept { return memory::kAtomicBytes; }
  [[nodiscard]] std::size_t record_bytes() const noexcept { return memory::kAtomicBytes; }
  [[nodiscard]] std::size_t stride() const noexcept { return memory::kLineBytes; }

  template <memory::Memory M>
  void update(M& memory, memory::Address record, std::span<const std::byte> value) const {
    ensure(value.size() == value_bytes(), "a word has another size");
    std::uint64_t word;
    std::memcpy(&word, value.data(), sizeof word);
    memory.template store<std::uint64_t>(record, word);
    memory.flush(record, sizeof word, memory::FlushKind::kClwb, kUpdateFlush);
    memory.sfence(kUpdateFence);
  }

  template <memory::Memory M>
  void read(M& memory, memory::Address record, std::span<std::byte> into,
            Reads reads = Reads::kIndependent) const {
    ensure(into.size() == value_bytes(), "a word has another size");
    read_bytes(memory, record, into, reads);
  }
};

}  // namespace pmsim::blocks::inplace
