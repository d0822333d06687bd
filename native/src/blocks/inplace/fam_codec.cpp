#include "pmsim/blocks/inplace/fam_codec.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pmsim::blocks::inplace {

namespace {

constexpr std::size_t kVectorWords = 4;

/// Bit `word % 31` of top-bit FAMB `word / 31` says what bit 31 of a word is.
struct TopPlace {
  std::size_t famb;
  unsigned bit;
};

constexpr TopPlace top_place(std::size_t word) noexcept {
  return {word / kWordsPerTopFamb, static_cast<unsigned>(word % kWordsPerTopFamb)};
}

void advance_scalar(std::span<Famb> fambs, std::span<const std::uint32_t> words, std::size_t from) noexcept {
  for (std::size_t word = from; word < words.size(); ++word)
    fambs[word] = famb_advance(fambs[word], words[word]);
}

/// Every top-bit FAMB advances to bits 31 of its words.
void advance_tops(std::span<Famb> tops, std::span<const std::uint32_t> words) noexcept {
  for (std::size_t top = 0; top < tops.size(); ++top) {
    const auto part = words.subspan(top * kWordsPerTopFamb);
    std::uint32_t high = 0;
    for (std::size_t word = 0; word < std::min(part.size(), kWordsPerTopFamb); ++word)
      high |= part[word] >> 31 << word;
    tops[top] = famb_advance(tops[top], high);
  }
}

void decode_scalar(std::span<const Famb> fambs, std::span<std::uint32_t> words, std::size_t from) noexcept {
  const std::span<const Famb> tops = fambs.subspan(words.size());
  for (std::size_t word = from; word < words.size(); ++word) {
    const TopPlace place = top_place(word);
    words[word] = famb_new(fambs[word]) | (famb_new(tops[place.famb]) >> place.bit & 1) << 31;
  }
}

#if defined(__x86_64__)

bool has_avx2() noexcept {
  static const bool has = __builtin_cpu_supports("avx2") != 0;  // asks the operating system as well
  return has;
}

/// Advances all top-bit FAMBs, and those of as many words as fill vectors; returns how many words.
__attribute__((target("avx2"))) std::size_t advance_avx2(std::span<Famb> fambs,
                                                         std::span<const std::uint32_t> words) noexcept {
  const __m256i one_version = _mm256_set1_epi64x(static_cast<long long>(kFambOneVersion));
  const __m256i version_mask = _mm256_set1_epi64x(static_cast<long long>(kFambVersionMask));
  const __m128i data_mask = _mm_set1_epi32(0x7FFFFFFF);
  const std::size_t vectors = words.size() / kVectorWords * kVectorWords;
  for (std::size_t word = 0; word < vectors; word += kVectorWords) {
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&words[word]));
    const __m256i data = _mm256_cvtepu32_epi64(_mm_and_si128(raw, data_mask));
    const __m256i before = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&fambs[word]));
    const __m256i version = _mm256_and_si256(_mm256_add_epi64(before, one_version), version_mask);
    const __m256i old = _mm256_andnot_si256(version_mask, _mm256_slli_epi64(before, kFambDataBits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(&fambs[word]),
                        _mm256_or_si256(version, _mm256_or_si256(old, data)));
  }
  std::size_t word = 0;
  for (Famb& top : fambs.subspan(words.size())) {
    // The raw words: in the masked ones every sign is 0 already (erratum of Listing 2).
    const std::size_t end = std::min(word + kWordsPerTopFamb, words.size());
    std::uint32_t high = 0;
    unsigned bit = 0;
    for (; word + kVectorWords <= end; word += kVectorWords, bit += kVectorWords) {
      const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&words[word]));
      high |= static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(raw))) << bit;
    }
    for (; word < end; ++word, ++bit)
      high |= words[word] >> 31 << bit;
    top = famb_advance(top, high);
  }
  return vectors;
}

/// Four words at a time, as far as their top bits lie in one FAMB.
__attribute__((target("avx2"))) void decode_avx2(std::span<const Famb> fambs,
                                                 std::span<std::uint32_t> words) noexcept {
  const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0);
  const __m128i data_mask = _mm_set1_epi32(0x7FFFFFFF);
  const __m128i to_sign = _mm_setr_epi32(31, 30, 29, 28);
  std::size_t word = 0;
  for (const Famb top : fambs.subspan(words.size())) {
    const std::size_t end = std::min(word + kWordsPerTopFamb, words.size());
    std::uint32_t high = famb_new(top);
    for (; word + kVectorWords <= end; word += kVectorWords, high >>= kVectorWords) {
      const __m256i four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&fambs[word]));
      const __m128i low = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(four, even));
      const __m128i shifted = _mm_sllv_epi32(_mm_set1_epi32(static_cast<int>(high)), to_sign);
      const __m128i value = _mm_or_si128(_mm_and_si128(low, data_mask), _mm_andnot_si128(data_mask, shifted));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(&words[word]), value);
    }
    for (; word < end; ++word, high >>= 1)
      words[word] = famb_new(fambs[word]) | (high & 1) << 31;
  }
}

#else

bool has_avx2() noexcept { return false; }

#endif

}  // namespace

FamPath fam_path() noexcept { return has_avx2() ? FamPath::kAvx2 : FamPath::kScalar; }

void fam_advance(std::span<Famb> fambs, std::span<const std::uint32_t> words, FamPath path) noexcept {
#if defined(__x86_64__)
  if (path == FamPath::kAvx2 && has_avx2())
    return advance_scalar(fambs, words, advance_avx2(fambs, words));
#endif
  static_cast<void>(path);
  advance_scalar(fambs, words, 0);
  advance_tops(fambs.subspan(words.size()), words);
}

void fam_decode(std::span<const Famb> fambs, std::span<std::uint32_t> words, FamPath path) noexcept {
#if defined(__x86_64__)
  if (path == FamPath::kAvx2 && has_avx2())
    return decode_avx2(fambs, words);
#endif
  static_cast<void>(path);
  decode_scalar(fambs, words, 0);
}

}  // namespace pmsim::blocks::inplace
