#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "pmsim/blocks/log/pmemlog.hpp"
#include "pmsim/memory/sim_memory.hpp"
#include "pmsim/memory/stream.hpp"

/// The log of libpmemlog, where it differs from the others: what an append stores, flushes and streams.

namespace pmsim::blocks::log {
namespace {

/// As pmem_memcpy does: from 256 bytes on the whole lines are streamed, and lines that they have a part of are
/// stored and flushed as all of a shorter one.
TEST(PmemLogAppend, StreamsTheWholeLinesOfLongEntries) {
  memory::SimMemory memory{{}};
  const Place place{.base = memory.allocate(memory::Medium::kPmem, 8192, {.name = "log"}), .bytes = 8192};
  PmemLog log = PmemLog::create(memory, place, {.layout = Layout::kNaive});
  const auto lines = [&](std::size_t payload) {
    memory::Stream stream;
    memory.attach(stream);
    log.append(memory, std::vector<std::byte>(payload));
    memory.detach();
    std::pair<std::size_t, std::size_t> streamed_and_flushed;
    for (std::size_t op = 0; op < stream.size(); ++op) {
      const std::size_t bytes = stream[op].bytes;
      if (stream[op].kind == memory::OpKind::kStreamStore)
        streamed_and_flushed.first += bytes / memory::kLineBytes;
      else if (stream[op].kind == memory::OpKind::kClwb)
        ++streamed_and_flushed.second;
    }
    return streamed_and_flushed;
  };
  using Lines = std::pair<std::size_t, std::size_t>;
  // The write offset is a flush more of each.
  EXPECT_EQ(lines(248), Lines(0, 4 + 1));
  EXPECT_EQ(lines(256), Lines(3, 2 + 1)) << "from 248 on: 8 bytes, three lines, 56 bytes";
  EXPECT_EQ(lines(520), Lines(8, 1 + 1)) << "from 504 on: 8 bytes, eight lines";
}

}  // namespace
}  // namespace pmsim::blocks::log
