#include "pmsim/trace/sources.hpp"

#include "pmsim/core/error.hpp"

namespace pmsim::trace {

ReplaySource::ReplaySource(const std::filesystem::path& path)
    : reader_(path), chunks_(info().threads()), next_(info().threads(), 0), by_thread_(info().threads(), 0) {
  for (std::uint32_t index = 0; index < info().chunks.size(); ++index) {
    chunks_[info().chunks[index].thread].push_back(index);
  }
}

void ReplaySource::refill(std::uint32_t thread, memory::Stream& stream) {
  ensure(thread < chunks_.size(), "a replay is asked for a thread that the trace does not have");
  if (next_[thread] == chunks_[thread].size())
    return;
  const std::size_t before = stream.size();
  reader_.read_chunk(chunks_[thread][next_[thread]++], stream);
  for (std::size_t i = before; i < stream.size(); ++i)
    ++by_kind_[static_cast<std::size_t>(stream[i].kind)];
  by_thread_[thread] += stream.size() - before;
}

void ReplaySource::check_served() const {
  ensure(by_thread_ == info().operations_by_thread, "a replay has not served every operation of its trace");
  if (by_kind_ != info().operations_by_kind) {
    throw ConfigError(
        "a trace contradicts its own counts of operations; record it again with `pmsim trace record`");
  }
}

}  // namespace pmsim::trace
