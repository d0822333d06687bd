#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "pmsim/blocks/site.hpp"
#include "pmsim/crash/subject.hpp"

namespace pmsim::crash {

/// How large a program the checker asks for.
enum class Scale : std::uint8_t {
  kSmall,  ///< few operations, few uncertain lines at a time: every durable image is visited
  kLarge,  ///< enough operations to reuse space, wrap around and mix variants: images are sampled
};

/// One block that the checker knows. To add one: write src/crash/subjects/NAME.cpp, declare its row below, add
/// it to registry.cpp.
struct SubjectKind {
  std::string_view name;   ///< as in `pmsim crash NAME`: "poplog", "page-cow", "fam"
  std::string_view title;  ///< one line for lists
  std::span<const blocks::SiteInfo> sites;
  /// The program is a pure function of seed and scale.
  std::function<std::unique_ptr<Subject>(std::uint64_t seed, Scale scale)> make;
  /// False: even a small program has too many images for visiting them all; only large ones are sampled.
  bool exhaustive = true;
};

[[nodiscard]] std::span<const SubjectKind* const> subject_kinds() noexcept;

/// Throws ConfigError for an unknown name, with the known ones.
[[nodiscard]] const SubjectKind& find_subject(std::string_view name);

}  // namespace pmsim::crash
