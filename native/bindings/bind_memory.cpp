#include <pybind11/stl.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

using memory::Address;
using memory::FlushKind;
using memory::Medium;
using memory::Persistence;
using memory::SimMemory;

/// The entry of a short list of names; ConfigError lists the names.
template <typename Value, std::size_t kCount>
Value named(const char* what, const std::string& name,
            const std::array<std::pair<std::string_view, Value>, kCount>& list) {
  std::string known;
  for (const auto& [entry, value] : list) {
    if (entry == name) {
      return value;
    }
    known += (known.empty() ? "" : ", ") + std::string(entry);
  }
  throw ConfigError("SimMemory: " + std::string(what) + " = '" + name + "': unknown; known: " + known);
}

constexpr std::array kMedia{std::pair{std::string_view("dram"), Medium::kDram},
                            std::pair{std::string_view("pmem"), Medium::kPmem},
                            std::pair{std::string_view("block"), Medium::kBlock}};
constexpr std::array kPersistence{std::pair{std::string_view("none"), Persistence::kUntracked},
                                  std::pair{std::string_view("adr"), Persistence::kAdr},
                                  std::pair{std::string_view("eadr"), Persistence::kEadr}};
constexpr std::array kFlushes{std::pair{std::string_view("clwb"), FlushKind::kClwb},
                              std::pair{std::string_view("clflushopt"), FlushKind::kClflushOpt},
                              std::pair{std::string_view("clflush"), FlushKind::kClflush}};

std::span<const std::byte> view(const py::bytes& data) {
  const std::string_view text = data;
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A SimMemory for tests and exploration from Python: one call per access, so not for speed. Emits into a
/// stream of its own.
class PythonMemory {
 public:
  PythonMemory(const std::string& persistence, bool wear)
      : memory_(memory::SimOptions{
            .capacities = {}, .persistence = named("persistence", persistence, kPersistence), .wear = wear}) {
    memory_.attach(stream_);
  }
  explicit PythonMemory(SimMemory memory) : memory_(std::move(memory)) { memory_.attach(stream_); }
  PythonMemory(const PythonMemory&) = delete;
  PythonMemory& operator=(const PythonMemory&) = delete;

  Address allocate(const std::string& medium, std::uint64_t bytes, const std::string& name) {
    return memory_.allocate(named("medium", medium, kMedia), bytes, {.name = name});
  }
  py::bytes read(Address address, std::size_t bytes) {
    std::string data(bytes, '\0');
    memory_.read(address, std::as_writable_bytes(std::span(data)));
    return data;
  }
  void write(Address address, const py::bytes& data) { memory_.write(address, view(data)); }
  void stream(Address address, const py::bytes& data) {
    const auto bytes = view(data);
    if (((address | bytes.size()) & (memory::kAtomicBytes - 1)) != 0) {
      throw ConfigError("SimMemory.stream: address and size must be multiples of 8 bytes");
    }
    memory_.stream(address, bytes);
  }
  void flush(Address address, std::size_t bytes, const std::string& kind, memory::Site site) {
    memory_.flush(address, bytes, named("kind", kind, kFlushes), site);
  }
  void set_thread(std::uint32_t thread) { memory_.attach(stream_, thread); }
  [[nodiscard]] std::optional<std::uint64_t> crash_count(std::uint64_t limit) const {
    return memory_.durability().count(limit);
  }
  [[nodiscard]] std::vector<std::unique_ptr<PythonMemory>> crash_states(std::uint64_t limit) const {
    const auto images = memory_.durability().enumerate(limit);
    if (!images) {
      throw ConfigError("SimMemory.crash_states: more than " + std::to_string(limit) +
                        " combinations; raise limit or use sample_crash_states");
    }
    std::vector<std::unique_ptr<PythonMemory>> states;
    for (const memory::DurableImage& image : *images) {
      states.push_back(std::make_unique<PythonMemory>(memory_.crash(image)));
    }
    return states;
  }
  [[nodiscard]] std::vector<std::unique_ptr<PythonMemory>> sample_crash_states(std::uint64_t count,
                                                                               std::uint64_t seed) const {
    Random random(seed);
    std::vector<std::unique_ptr<PythonMemory>> states;
    for (std::uint64_t i = 0; i < count; ++i) {
      states.push_back(std::make_unique<PythonMemory>(memory_.crash(memory_.durability().sample(random))));
    }
    return states;
  }
  [[nodiscard]] std::string word_state(Address address) const {
    switch (memory_.word_state(address)) {
      case memory::WordState::kDurable:
        return "durable";
      case memory::WordState::kMaybe:
        return "maybe";
      case memory::WordState::kLost:
        return "lost";
    }
    throw SimulationError("pmsim bug: unknown word state");
  }
  [[nodiscard]] py::dict wear() const {
    const memory::WearSummary summary = memory_.wear();
    const auto row = [](const memory::WearCounts& counts) {
      py::dict entry;
      entry["writes"] = counts.writes;
      entry["written"] = counts.units;
      entry["maximum"] = counts.maximum;
      entry["histogram"] = counts.histogram;
      return entry;
    };
    py::dict result;
    result["lines"] = row(summary.lines);
    result["blocks"] = row(summary.blocks);
    result["modified_lines"] = summary.modified_lines;
    return result;
  }

  SimMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const SimMemory& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t emitted() const noexcept { return stream_.size(); }

 private:
  SimMemory memory_;
  memory::Stream stream_;
};

}  // namespace

void bind_memory(py::module_& module) {
  py::class_<PythonMemory>(module, "SimMemory",
                           "Simulated memory with the x86 persistence model, for tests and exploration.")
      .def(py::init<const std::string&, bool>(), py::kw_only(), py::arg("persistence") = "adr",
           py::arg("wear") = false)
      .def("allocate", &PythonMemory::allocate, py::arg("medium"), py::arg("bytes"),
           py::arg("name") = "unnamed", "Address of a new region on dram, pmem or block.")
      .def("read", &PythonMemory::read, py::arg("address"), py::arg("bytes"))
      .def("write", &PythonMemory::write, py::arg("address"), py::arg("data"), "Stores through the cache.")
      .def("stream", &PythonMemory::stream, py::arg("address"), py::arg("data"),
           "Non-temporal stores of whole words.")
      .def("flush", &PythonMemory::flush, py::arg("address"), py::arg("bytes"), py::arg("kind") = "clwb",
           py::arg("site") = 0, "Writes back every line touched: clwb, clflushopt or clflush.")
      .def(
          "sfence", [](PythonMemory& self, memory::Site site) { self.memory().sfence(site); },
          py::arg("site") = 0)
      .def(
          "mfence", [](PythonMemory& self, memory::Site site) { self.memory().mfence(site); },
          py::arg("site") = 0)
      .def(
          "order", [](PythonMemory& self, memory::Site site) { self.memory().order(site); },
          py::arg("site") = 0, "An ordering point between two stores to one line.")
      .def(
          "block_read",
          [](PythonMemory& self, Address device, Address destination, std::size_t bytes) {
            self.memory().block_read(device, destination, bytes);
          },
          py::arg("device"), py::arg("destination"), py::arg("bytes"))
      .def(
          "block_write",
          [](PythonMemory& self, Address device, Address source, std::size_t bytes) {
            self.memory().block_write(device, source, bytes);
          },
          py::arg("device"), py::arg("source"), py::arg("bytes"))
      .def("block_flush", [](PythonMemory& self) { self.memory().block_flush(); })
      .def("set_thread", &PythonMemory::set_thread, py::arg("thread"),
           "Who the following flushes and fences belong to.")
      .def(
          "disable_site", [](PythonMemory& self, memory::Site site) { self.memory().disable_site(site); },
          py::arg("site"),
          "Makes the flushes, fences and ordering points of one site do nothing; 0 enables all.")
      .def(
          "site_uses",
          [](const PythonMemory& self, memory::Site site) { return self.memory().site_uses(site); },
          py::arg("site"), "How often the point was executed while tracking, disabled or not.")
      .def("crash_count", &PythonMemory::crash_count, py::arg("limit") = 1'000'000,
           "Number of legal durable images now; None when more than limit combinations exist.")
      .def("crash_states", &PythonMemory::crash_states, py::arg("limit") = 10'000,
           "A memory for each legal durable image. Raises ConfigError when there may be more than limit.")
      .def("sample_crash_states", &PythonMemory::sample_crash_states, py::arg("count"), py::arg("seed"))
      .def("word_state", &PythonMemory::word_state, py::arg("address"), "durable, maybe or lost.")
      .def("wear", &PythonMemory::wear,
           "Writes per 64-byte line and 256-byte block. Raises ConfigError when not counted.")
      .def_property_readonly(
          "touched_bytes", [](const PythonMemory& self) { return self.memory().touched_bytes(); },
          "Bytes of the 4 KiB pages written to.")
      .def_property_readonly("emitted", &PythonMemory::emitted, "Micro-operations emitted so far.");
}

}  // namespace pmsim::bindings
