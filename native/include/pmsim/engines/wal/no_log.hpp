#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pmsim/blocks/log/types.hpp"

namespace pmsim::engines::wal {

/// In the place of a log: it takes every entry and keeps none. NOTHING IS DURABLE.
///
/// What a transaction costs without the writes of its log (WAL-nowrite of Imamura et al., MinMove 2017, section
/// 5.2), or without any log.
class NoLog {
 public:
  [[nodiscard]] static constexpr std::uint64_t footprint(std::uint64_t) noexcept { return 0; }
  [[nodiscard]] static constexpr std::uint64_t capacity() noexcept { return std::uint64_t{1} << 62; }
  [[nodiscard]] static constexpr std::uint64_t free() noexcept { return capacity(); }
  [[nodiscard]] blocks::log::Lsn head() const noexcept { return head_; }
  [[nodiscard]] blocks::log::Lsn tail() const noexcept { return tail_; }

  void append(std::uint64_t payload) noexcept { tail_ += payload; }
  template <memory::Memory M>
  void truncate_to(M&, blocks::log::Lsn end) noexcept {
    head_ = end;
  }
  template <memory::Memory M>
  [[nodiscard]] std::optional<blocks::log::Lsn> read(M&, blocks::log::Lsn,
                                                     std::vector<std::byte>&) const noexcept {
    return std::nullopt;
  }

 private:
  static constexpr blocks::log::Lsn kFirst = 1;  ///< no LSN is 0
  blocks::log::Lsn head_ = kFirst;
  blocks::log::Lsn tail_ = kFirst;
};

}  // namespace pmsim::engines::wal
