#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pmsim/blocks/inplace/famb.hpp"

namespace pmsim::blocks::inplace {

/// Two ways to compute the same bytes.
enum class FamPath : std::uint8_t {
  kScalar,  ///< sec. 3.4.3, one FAMB after the other
  kAvx2,    ///< appendix A, four FAMBs at a time
};

/// The widest path that this CPU runs, asked once.
[[nodiscard]] FamPath fam_path() noexcept;

/// One update of a whole record in registers: every FAMB advances once, FAMB i to the low 31 bits of word i,
/// the FAMBs after them to the top bits.
///
/// The format (the two listings of the paper disagree; this is the order of the first and the bits of the
/// second): FAMBs of the words come first, word by word; then one FAMB for the top bits of each 31 words, word
/// 31 k + i at bit i.
///
/// Deviations from the paper's listings, which do not do what their text says:
///  - Listing 2 masks the input and collects the sign bits from the masked register, which are zero by then.
///  Here
///    they are collected from the raw input.
///  - Listing 2 computes the version of the top-bit FAMB from the top bits (`msbs`); it follows from that FAMB.
///  - Listing 2 writes `msbs + 1L<<62`, which C reads as `(msbs + 1L) << 62`.
///  - Listing 2 or-s `famb0 << 31` in unmasked, so that two data bits of the former old value reach the
///  version.
///  - The listing of sec. 3.4.3 shifts a signed word (-1 for negative ones), never clears `high`, and shifts it
///  once
///    too often: bit 0 stays unused, and of 31 words the first would fall out.
///
/// `fambs` has fambs_of(4 * words.size()) elements. The result does not depend on `path`; kAvx2 on a CPU
/// without it is the scalar path.
void fam_advance(std::span<Famb> fambs, std::span<const std::uint32_t> words, FamPath path) noexcept;

/// The user data of a record: the new value of each FAMB and its top bit.
void fam_decode(std::span<const Famb> fambs, std::span<std::uint32_t> words, FamPath path) noexcept;

/// What one pass over a record computes, in instructions: counted in the disassembly of fam_codec.cpp (GCC 12,
/// -O3), without loop control, since a record type of fixed size is unrolled, and without the loads and stores
/// of the record, which the memory counts. Four words at a time or one, and once for each top-bit FAMB.
struct FamInstructions {
  std::uint32_t vector;  ///< four words
  std::uint32_t word;    ///< a word outside of the vectors; every word on the scalar path
  std::uint32_t top;     ///< a FAMB of top bits

  [[nodiscard]] constexpr std::uint32_t of(std::size_t words, FamPath path) const noexcept {
    const std::size_t vectors = path == FamPath::kAvx2 ? words / 4 : 0;
    const std::size_t tops = (words + kWordsPerTopFamb - 1) / kWordsPerTopFamb;
    return static_cast<std::uint32_t>(vectors * vector + (words - 4 * vectors) * word + tops * top);
  }
};
/// vector: vpand with its load, vpmovzxdq, vpaddq, vpand, vpsllq, vpandn, 2 vpor; vmovmskps with its load, shl,
/// or. word: mov, and, mov, add, and, shl, and, 2 or; mov, shr, shl, or. top: and, add, and, shl, and, 2 or.
inline constexpr FamInstructions kFamAdvanceInstructions{.vector = 11, .word = 13, .top = 7};
/// vector: vpermd, vpand, vmovd, vpshufd, vpsllvd, vpandn, vpor, vmovdqu, shr. word: and, mov, shl, or, mov,
/// shr. top: and.
inline constexpr FamInstructions kFamDecodeInstructions{.vector = 9, .word = 6, .top = 1};

}  // namespace pmsim::blocks::inplace
