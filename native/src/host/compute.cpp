#include "pmsim/core/error.hpp"
#include "pmsim/host/registry.hpp"

namespace pmsim::host {

namespace {

constexpr std::uint64_t kInstructions = 1000;  ///< of one operation: the loop around them does not count

/// Instructions from registers alone, 1000 an operation. "dependent-add": each waits for the one before, one
/// cycle on every x86 core, so their rate is the clock frequency. "nop": no operands, so the front end is the
/// limit: the instructions that a core dispatches in a cycle.
class Compute final : public Benchmark {
 public:
  explicit Compute(Parameters& parameters)
      : dependent_(parameters.choice("instruction", {"dependent-add", "nop"}) == "dependent-add") {
#if !defined(__x86_64__)
    throw ConfigError("compute: is written for x86-64; this machine has another architecture");
#endif
  }

  void run(std::uint32_t /*thread*/, std::uint64_t operations) override {
    static_assert(kInstructions == 1000);
#if defined(__x86_64__)
    for (std::uint64_t done = 0; done < operations; ++done) {
      if (dependent_) {
        std::uint64_t sum = done;
        asm volatile(".rept 1000\n\tadd %0, %0\n\t.endr" : "+r"(sum));
      } else {
        asm volatile(".rept 1000\n\tnop\n\t.endr");
      }
    }
#else
    static_cast<void>(operations);
#endif
  }

 private:
  bool dependent_;
};

}  // namespace

std::unique_ptr<Benchmark> make_compute(Parameters& parameters, const Place& /*place*/) {
  return std::make_unique<Compute>(parameters);
}

}  // namespace pmsim::host
