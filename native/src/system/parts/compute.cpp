#include "pmsim/core/time.hpp"
#include "pmsim/system/part.hpp"

namespace pmsim::system {

namespace {

/// A request that keeps its worker busy for a given time: `first` picoseconds, to the nearest cycle of the
/// core. For checks against queueing theory, and for work that nobody has modelled yet.
class Compute final : public Part {
 public:
  explicit Compute(const PartContext& context) : cycle_(kSecond / context.platform.core.frequency) {}

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {"run"}; }

  std::uint64_t execute(memory::SimMemory& memory, std::uint32_t, const Request& request) override {
    memory.compute(
        (request.first + static_cast<std::uint64_t>(cycle_) / 2) / static_cast<std::uint64_t>(cycle_), 0);
    return 0;
  }

  void recover(memory::SimMemory&) override {}

 private:
  Picoseconds cycle_;
};

}  // namespace

std::unique_ptr<Part> make_compute(workloads::Parameters&, const PartContext& context) {
  return std::make_unique<Compute>(context);
}

}  // namespace pmsim::system
