#include "pmsim/workloads/oltp/requests.hpp"

#include <bit>
#include <cstring>

namespace pmsim::workloads::oltp {

static_assert(std::endian::native == std::endian::little, "requests are packed little-endian");

std::vector<Request> unpack_requests(std::string_view bytes) {
  if (bytes.size() % sizeof(Request) != 0)
    throw ConfigError("requests: " + std::to_string(bytes.size()) + " bytes are no whole number of requests");
  std::vector<Request> requests(bytes.size() / sizeof(Request));
  if (!requests.empty())
    std::memcpy(requests.data(), bytes.data(), bytes.size());
  for (const Request& request : requests) {
    if (static_cast<std::uint32_t>(request.kind) >= kRequestKinds)
      throw ConfigError("requests: there is none of kind " +
                        std::to_string(static_cast<std::uint32_t>(request.kind)));
    if (request.key >= std::uint64_t{1} << 31)
      throw ConfigError("requests: more than 2^31 keys; choose a shorter sequence");
  }
  return requests;
}

}  // namespace pmsim::workloads::oltp
