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
  [[nodiscard]] bool shares_lines() const noexcept override { return source_.shares_lines(); }

 private:
  memory::Source& source_;
  TraceWriter& writer_;
};

/// Serves a trace, batch by batch as it was recorded: threads share caches, so where their streams were cut
/// matters.
class ReplaySource final : public memory::Source {
 public:
  explicit ReplaySource(const std::filesystem::path& path);

  void refill(std::uint32_t thread, memory::Stream& stream) override;
  /// As the trace says.
  [[nodiscard]] bool shares_lines() const noexcept override { return info().plan.shares_lines; }
  [[nodiscard]] const TraceInfo& info() const noexcept { return reader_.info(); }
  /// The share of the trace that has been served.
  [[nodiscard]] double share_served() const noexcept;
  /// Reads and checks what nobody has asked for: a run may end before its trace does.
  void drain();
  /// Throws SimulationError unless exactly the micro-operations that have been read were served and drained, by
  /// kind and by thread, and ConfigError unless these are the ones that the trace counts.
  void check_served() const;

 private:
  struct Thread {
    std::vector<std::uint32_t> chunks;  ///< their numbers, in order
    std::size_t next_chunk = 0;
    memory::Stream ops;  ///< of the current chunk
    std::vector<std::uint32_t> batches;
    std::size_t next_op = 0;
    std::size_t next_batch = 0;
    std::uint64_t read = 0;
    std::uint64_t served = 0;
  };

  TraceReader reader_;
  std::vector<Thread> threads_;
  std::array<std::uint64_t, memory::kOpKinds> served_by_kind_{};
};

}  // namespace pmsim::trace
