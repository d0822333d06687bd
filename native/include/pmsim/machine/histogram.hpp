#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "pmsim/core/time.hpp"

namespace pmsim::machine {

/// Log-bucketed latency histogram: 64 buckets per power of two, so a percentile is at most 1.6 % too high.
/// Mean and maximum are exact.
class Histogram {
 public:
  void record(Picoseconds latency) noexcept {
    const auto value = static_cast<std::uint64_t>(std::max<Picoseconds>(latency, 0));
    ++buckets_[bucket_of(value)];
    ++count_;
    sum_ += static_cast<PicosecondSum>(value);
    maximum_ = std::max(maximum_, static_cast<Picoseconds>(value));
  }

  void merge(const Histogram& other) noexcept {
    for (std::size_t index = 0; index < buckets_.size(); ++index) {
      buckets_[index] += other.buckets_[index];
    }
    count_ += other.count_;
    sum_ += other.sum_;
    maximum_ = std::max(maximum_, other.maximum_);
  }

  void clear() noexcept { *this = Histogram{}; }

  /// What has been recorded since this histogram was as `before`, but for the maximum, which is that of all.
  [[nodiscard]] Histogram since(const Histogram& before) const noexcept {
    Histogram later = *this;
    for (std::size_t index = 0; index < buckets_.size(); ++index)
      later.buckets_[index] -= before.buckets_[index];
    later.count_ -= before.count_;
    later.sum_ -= before.sum_;
    return later;
  }

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] double sum() const noexcept { return static_cast<double>(sum_); }
  [[nodiscard]] Picoseconds maximum() const noexcept { return maximum_; }
  /// With its fraction; 0 where nothing has been recorded.
  [[nodiscard]] double mean() const noexcept { return count_ == 0 ? 0.0 : sum() / static_cast<double>(count_); }

  /// Upper edge of the bucket in which the fraction `quantile` of all records is reached, at most the maximum.
  [[nodiscard]] Picoseconds percentile(double quantile) const noexcept {
    if (count_ == 0) {
      return 0;
    }
    const auto rank =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(quantile * static_cast<double>(count_))));
    std::int64_t seen = 0;
    for (std::size_t index = 0; index < buckets_.size(); ++index) {
      seen += buckets_[index];
      if (seen >= rank) {
        return std::min(maximum_, upper_edge(index));
      }
    }
    return maximum_;
  }

  /// Records by bucket, and the largest latency that a bucket holds.
  [[nodiscard]] std::span<const std::int64_t> buckets() const noexcept { return buckets_; }
  [[nodiscard]] static Picoseconds upper_edge(std::size_t index) noexcept {
    if (index < kSub) {
      return static_cast<Picoseconds>(index);
    }
    const auto exponent = index / kSub - 1;
    const auto mantissa = index % kSub + kSub;
    return static_cast<Picoseconds>(((mantissa + 1) << exponent) - 1);
  }

 private:
  static constexpr int kSubBits = 6;
  static constexpr std::uint64_t kSub = 1U << kSubBits;

  [[nodiscard]] static std::size_t bucket_of(std::uint64_t value) noexcept {
    if (value < kSub) {
      return static_cast<std::size_t>(value);
    }
    const int exponent = static_cast<int>(std::bit_width(value)) - 1 - kSubBits;
    return static_cast<std::size_t>((static_cast<std::uint64_t>(exponent) + 1) * kSub +
                                    ((value >> exponent) - kSub));
  }
  std::array<std::int64_t, (64 - kSubBits) * kSub> buckets_{};
  PicosecondSum sum_ = 0;
  std::int64_t count_ = 0;
  Picoseconds maximum_ = 0;
};

}  // namespace pmsim::machine
