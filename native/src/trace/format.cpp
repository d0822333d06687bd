#include "pmsim/trace/format.hpp"

namespace pmsim::trace {

const char* name_of(memory::OpKind kind) noexcept {
  static constexpr std::array<const char*, memory::kOpKinds> kNames{
      "load",         "store",           "stream_store",  "clwb",    "clflushopt", "clflush",
      "sfence",       "mfence",          "prefetch",      "compute", "block_read", "block_write",
      "block_flush",  "operation_begin", "operation_end", "atomic",  "acquire",    "release",
      "block_gather", "block_commit"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

}  // namespace pmsim::trace
