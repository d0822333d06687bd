#include "pmsim/trace/sources.hpp"

#include <algorithm>
#include <cstddef>

#include "pmsim/core/error.hpp"

namespace pmsim::trace {

ReplaySource::ReplaySource(const std::filesystem::path& path) : reader_(path), threads_(info().threads()) {
  for (std::uint32_t index = 0; index < info().chunks.size(); ++index) {
    threads_[info().chunks[index].thread].chunks.push_back(index);
  }
}

void ReplaySource::refill(std::uint32_t thread, memory::Stream& stream) {
  ensure(thread < threads_.size(), "a replay is asked for a thread that the trace does not have");
  Thread& state = threads_[thread];
  if (state.next_batch == state.batches.size()) {
    if (state.next_chunk == state.chunks.size())
      return;
    state.ops.clear();
    state.batches.clear();
    state.next_op = state.next_batch = 0;
    reader_.read_chunk(state.chunks[state.next_chunk++], state.ops, state.batches);
    state.read += state.ops.size();
  }
  const std::size_t end = state.next_op + state.batches[state.next_batch++];
  for (; state.next_op < end; ++state.next_op) {
    const MicroOp& op = state.ops[state.next_op];
    stream.push(op.kind, op.address, op.bytes, op.flags, op.site);
    ++served_by_kind_[static_cast<std::size_t>(op.kind)];
    ++state.served;
  }
}

double ReplaySource::share_served() const noexcept {
  std::uint64_t served = 0;
  for (const Thread& thread : threads_)
    served += thread.served;
  return static_cast<double>(served) / static_cast<double>(std::max<std::uint64_t>(1, info().operations()));
}

void ReplaySource::drain() {
  memory::Stream stream;
  for (std::uint32_t thread = 0; thread < threads_.size(); ++thread) {
    do {
      stream.clear();
      refill(thread, stream);
    } while (!stream.empty());
  }
}

void ReplaySource::check_served() const {
  bool agree = served_by_kind_ == info().operations_by_kind;
  for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
    ensure(threads_[thread].served == threads_[thread].read,
           "a replay has not served every operation that it has read");
    agree = agree && threads_[thread].served == info().operations_by_thread[thread];
  }
  if (!agree) {
    throw ConfigError(
        "a trace contradicts its own counts of operations, or has not been read to its end; record it again "
        "with `pmsim trace record`");
  }
}

}  // namespace pmsim::trace
