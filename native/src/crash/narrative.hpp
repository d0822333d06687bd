#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pmsim/blocks/site.hpp"
#include "pmsim/crash/subject.hpp"
#include "program.hpp"

namespace pmsim::crash {

// The parts of a counter-example, each as indented lines.

/// A word that a crash did not leave as it was last stored.
struct LostWord {
  memory::Address address;
  std::uint64_t stored;
  std::uint64_t durable;
};
[[nodiscard]] std::vector<LostWord> lost_words_of(const memory::SimMemory& memory,
                                                  const memory::CellBytes& cell);

[[nodiscard]] std::string operation_name(std::uint32_t operation);
/// The program up to the crash: one line per operation.
[[nodiscard]] std::string operations(const Subject& subject, const CrashPoint& point);
/// The log of `memory` from the operation that the crash cut short, or from the oldest lost store where that is
/// earlier; stores say what became of them in `image`.
[[nodiscard]] std::string history(const memory::SimMemory& memory, const memory::DurableImage& image,
                                  std::uint32_t operation, std::span<const blocks::SiteInfo> sites);
/// What a recovery did that wrote the log of `memory`; null: one that wrote none.
[[nodiscard]] std::string recovery(const memory::SimMemory* memory, std::span<const blocks::SiteInfo> sites);
/// The lost words, with what was stored and what was found.
[[nodiscard]] std::string losses(const memory::SimMemory& memory, const memory::DurableImage& image);

}  // namespace pmsim::crash
