#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "pmsim/memory/stream.hpp"
#include "pmsim/trace/reader.hpp"
#include "pmsim/trace/writer.hpp"

namespace pmsim::trace {

/// Serves what another source serves, and writes it to a trace. Call writer.finish() when the run is over.
class RecordingSource final : public memory::Source {
 public:
  RecordingSource(memory::Source& source, TraceWriter& writer) : source_(source), writer_(writer) {}

  void refill(std::uint32_t thread, memory::Stream& stream) override {
    source_.refill(thread, stream);
    writer_.append(thread, {stream.data(), stream.size()});
  }

 private:
  memory::Source& source_;
  TraceWriter& writer_;
};

/// Serves a trace, one chunk per refill. Its batches are not those of the recorded run, which changes no
/// timing: a machine sees a thread's micro-operations, not where they were cut.
class ReplaySource final : public memory::Source {
 public:
  explicit ReplaySource(const std::filesystem::path& path);

  void refill(std::uint32_t thread, memory::Stream& stream) override;
  [[nodiscard]] const TraceInfo& info() const noexcept { return reader_.info(); }
  /// Throws SimulationError unless exactly the micro-operations that the trace counts have been served, by kind
  /// and by thread; ConfigError when the trace contradicts its own counts.
  void check_served() const;

 private:
  TraceReader reader_;
  std::vector<std::vector<std::uint32_t>> chunks_;  ///< of each thread, in order
  std::vector<std::size_t> next_;
  std::array<std::uint64_t, memory::kOpKinds> by_kind_{};
  std::vector<std::uint64_t> by_thread_;
};

}  // namespace pmsim::trace
