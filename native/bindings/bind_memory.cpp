#include <pybind11/stl.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "python_memory.hpp"

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

memory::LatchMode mode_of(bool shared) {
  return shared ? memory::LatchMode::kShared : memory::LatchMode::kExclusive;
}

void check_aligned(const char* what, Address address) {
  if (address % sizeof(std::uint64_t) != 0)
    throw ConfigError(std::string("SimMemory: ") + what + " = " + std::to_string(address) +
                      ": a locked access needs an aligned word; choose a multiple of 8");
}

std::span<const std::byte> view(const py::bytes& data) {
  const std::string_view text = data;
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

PythonMemory::PythonMemory(const std::string& persistence, bool wear)
    : PythonMemory(SimMemory({.persistence = named("persistence", persistence, kPersistence), .wear = wear})) {}

PythonMemory::PythonMemory(SimMemory&& memory) : own_(std::move(memory)), memory_(&*own_) {
  memory_->attach(stream_);
}

SimMemory& PythonMemory::memory() { return const_cast<SimMemory&>(std::as_const(*this).memory()); }

const SimMemory& PythonMemory::memory() const {
  if (memory_ == nullptr)
    throw ConfigError("SimMemory: it was lent for one call, which has returned; use the one of this call");
  return *memory_;
}

py::capsule PythonMemory::accesses() {
  // The program gets a pointer to the base class, which may not be where the object is.
  return py::capsule(static_cast<prototype::Accesses*>(&accesses_), prototype::Accesses::kCapsule);
}

Address PythonMemory::allocate(const std::string& medium, std::uint64_t bytes, const std::string& name) {
  return memory().allocate(named("medium", medium, kMedia), bytes, {.name = name});
}

Address PythonMemory::region(const std::string& name) const {
  const memory::RegionPlace* found = nullptr;
  for (const auto& [medium_name, medium] : kMedia) {
    for (const memory::RegionPlace& place : memory().regions().places(medium)) {
      if (place.name != name)
        continue;
      if (found != nullptr)
        throw ConfigError("SimMemory.region: '" + name + "' is the name of several regions; give each its own");
      found = &place;
    }
  }
  if (found == nullptr)
    throw ConfigError("SimMemory.region: no region has the name '" + name + "'; allocate() gives it one");
  return found->base;
}

py::bytes PythonMemory::read(Address address, std::size_t bytes, bool dependent) {
  std::string data(bytes, '\0');
  const auto into = std::as_writable_bytes(std::span(data));
  if (dependent) {
    memory().read_dependent(address, into);
  } else {
    memory().read(address, into);
  }
  return data;
}

void PythonMemory::write(Address address, const py::bytes& data) { memory().write(address, view(data)); }

void PythonMemory::stream(Address address, const py::bytes& data) {
  const auto bytes = view(data);
  if (((address | bytes.size()) & (memory::kAtomicBytes - 1)) != 0)
    throw ConfigError("SimMemory.stream: address and size must be multiples of 8 bytes");
  memory().stream(address, bytes);
}

void PythonMemory::flush(Address address, std::size_t bytes, const std::string& kind, memory::Site site) {
  memory().flush(address, bytes, named("kind", kind, kFlushes), site);
}

std::vector<std::unique_ptr<PythonMemory>> PythonMemory::crash_states(std::uint64_t limit) const {
  const auto images = memory().durability().enumerate(limit);
  if (!images) {
    throw ConfigError("SimMemory.crash_states: more than " + std::to_string(limit) +
                      " combinations; raise limit or use sample_crash_states");
  }
  std::vector<std::unique_ptr<PythonMemory>> states;
  for (const memory::DurableImage& image : *images)
    states.push_back(std::make_unique<PythonMemory>(memory().crash(image)));
  return states;
}

std::vector<std::unique_ptr<PythonMemory>> PythonMemory::sample_crash_states(std::uint64_t count,
                                                                             std::uint64_t seed) const {
  Random random(seed);
  std::vector<std::unique_ptr<PythonMemory>> states;
  for (std::uint64_t i = 0; i < count; ++i)
    states.push_back(std::make_unique<PythonMemory>(memory().crash(memory().durability().sample(random))));
  return states;
}

std::string PythonMemory::word_state(Address address) const {
  switch (memory().word_state(address)) {
    case memory::WordState::kDurable:
      return "durable";
    case memory::WordState::kMaybe:
      return "maybe";
    case memory::WordState::kLost:
      return "lost";
  }
  throw SimulationError("pmsim bug: unknown word state");
}

py::dict PythonMemory::wear() const {
  const memory::WearSummary summary = memory().wear();
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

void PythonMemory::set_thread(std::uint32_t thread) {
  memory::Stream* const attached = memory().attached();
  memory().attach(attached != nullptr ? *attached : stream_, thread);
  if (attached == nullptr)
    memory().detach();
}

std::uint64_t PythonMemory::latch_word(Address latch) const {
  check_aligned("latch", latch);
  std::uint64_t word = 0;
  memory().peek(latch, std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

bool PythonMemory::admits(Address latch, bool shared) const {
  return memory::LatchWord::admits(latch_word(latch), mode_of(shared));
}

std::uint64_t PythonMemory::acquire(Address latch, bool shared) {
  if (!admits(latch, shared))
    throw ConfigError("SimMemory.acquire: the latch is held, and nobody else runs who could release it");
  return memory().acquire(latch, mode_of(shared));
}

void PythonMemory::release(Address latch, std::uint64_t version, bool shared) {
  if (!memory::LatchWord::is_held(latch_word(latch), mode_of(shared)))
    throw ConfigError(
        "SimMemory.release: the latch is not held like that: it has been released before, or "
        "its word was stored to");
  memory().release(latch, mode_of(shared), version);
}

void PythonMemory::operation_begin(bool alone) {
  const auto flags = static_cast<std::uint8_t>(alone ? memory::kSerialising : 0);
  stream_.push(memory::OpKind::kOperationBegin, 0, 0, flags);
}

void PythonMemory::operation_end() { stream_.push(memory::OpKind::kOperationEnd, 0, 0); }

py::bytes PythonMemory::take_operations() {
  const py::bytes taken(reinterpret_cast<const char*>(stream_.data()),
                        stream_.size() * sizeof(memory::MicroOp));
  stream_.clear();
  return taken;
}

void bind_memory(py::module_& module) {
  py::class_<PythonMemory>(module, "SimMemory",
                           "Simulated memory with the x86 persistence model, for tests and exploration.")
      .def(py::init<const std::string&, bool>(), py::kw_only(), py::arg("persistence") = "adr",
           py::arg("wear") = false)
      .def("allocate", &PythonMemory::allocate, py::arg("medium"), py::arg("bytes"),
           py::arg("name") = "unnamed", "Address of a new region on dram, pmem or block.")
      .def("region", &PythonMemory::region, py::arg("name"),
           "Address of the region that was allocated under a name of its own. Raises ConfigError.")
      .def("read", &PythonMemory::read, py::arg("address"), py::arg("bytes"), py::arg("dependent") = false,
           "dependent: the address was read by the load before it.")
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
      .def(
          "block_flush", [](PythonMemory& self, memory::Site site) { self.memory().block_flush(site); },
          py::arg("site") = 0)
      .def(
          "fetch_add",
          [](PythonMemory& self, Address address, std::uint64_t delta) {
            check_aligned("address", address);
            return self.memory().fetch_add(address, delta);
          },
          py::arg("address"), py::arg("delta"), "Adds to a word, locked; returns what it was.")
      .def(
          "compare_exchange",
          [](PythonMemory& self, Address address, std::uint64_t expected, std::uint64_t desired) {
            check_aligned("address", address);
            return self.memory().compare_exchange(address, expected, desired);
          },
          py::arg("address"), py::arg("expected"), py::arg("desired"),
          "Exchanges a word if it is as expected, locked; returns what it was.")
      .def("admits", &PythonMemory::admits, py::arg("latch"), py::kw_only(), py::arg("shared") = false,
           "Whether acquire() would get the latch.")
      .def("acquire", &PythonMemory::acquire, py::arg("latch"), py::kw_only(), py::arg("shared") = false,
           "Acquires a latch, a word; returns its version, for release(). Raises ConfigError where it is held.")
      .def("release", &PythonMemory::release, py::arg("latch"), py::arg("version"), py::kw_only(),
           py::arg("shared") = false)
      .def(
          "prefetch", [](PythonMemory& self, Address address) { self.memory().prefetch(address); },
          py::arg("address"))
      .def(
          "compute",
          [](PythonMemory& self, std::uint32_t cycles, std::uint32_t instructions) {
            self.memory().compute(cycles, instructions);
          },
          py::arg("cycles"), py::arg("instructions") = 0,
          "What the core computes before what follows: cycles, and instructions at its width.")
      .def(
          "mispredict",
          [](PythonMemory& self, bool at_hand) {
            self.memory().mispredict(at_hand ? memory::BranchOn::kAtHand : memory::BranchOn::kLastLoad);
          },
          py::kw_only(), py::arg("at_hand") = false,
          "A branch that nothing could predict: it depends on the load before, or on what has been at hand.")
      .def("accesses", &PythonMemory::accesses,
           "What a program in C++ that is compiled apart from the core calls in the place of the above.")
      .def("operation_begin", &PythonMemory::operation_begin, py::kw_only(), py::arg("alone") = false,
           "An operation of the workload begins; alone: when all before has retired.")
      .def("operation_end", &PythonMemory::operation_end)
      .def("take_operations", &PythonMemory::take_operations,
           "Micro-operations emitted since the last call, 16 bytes each, for TraceWriter.append().")
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
      .def(
          "crash_count",
          [](const PythonMemory& self, std::uint64_t limit) { return self.memory().durability().count(limit); },
          py::arg("limit") = 1'000'000,
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
      .def_property_readonly(
          "pmem_footprint", [](const PythonMemory& self) { return self.memory().regions().pmem_footprint(); },
          "Bytes of all regions on pmem.")
      .def_property_readonly("emitted", &PythonMemory::emitted, "Micro-operations emitted so far.");
}

}  // namespace pmsim::bindings
