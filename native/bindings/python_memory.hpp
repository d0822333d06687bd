#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pmsim/memory/sim_memory.hpp"
#include "sim_accesses.hpp"

namespace pmsim::bindings {

/// A SimMemory for tests, prototypes and exploration from Python: one call per access, so not for speed. Emits
/// into a stream of its own. Either owns the memory, or has it for the time of one call (Borrowed): Python may
/// keep the object for longer, and is then refused.
class PythonMemory {
 public:
  PythonMemory(const std::string& persistence, bool wear);
  explicit PythonMemory(memory::SimMemory&& memory);
  PythonMemory(const PythonMemory&) = delete;
  PythonMemory& operator=(const PythonMemory&) = delete;

  memory::Address allocate(const std::string& medium, std::uint64_t bytes, const std::string& name);
  /// Throws ConfigError where no region, or more than one, has the name.
  [[nodiscard]] memory::Address region(const std::string& name) const;
  pybind11::bytes read(memory::Address address, std::size_t bytes, bool dependent);
  void write(memory::Address address, const pybind11::bytes& data);
  void stream(memory::Address address, const pybind11::bytes& data);
  void flush(memory::Address address, std::size_t bytes, const std::string& kind, memory::Site site);
  [[nodiscard]] bool admits(memory::Address latch, bool shared) const;
  /// Throws ConfigError where it is held: nobody else runs meanwhile.
  std::uint64_t acquire(memory::Address latch, bool shared);
  void release(memory::Address latch, std::uint64_t version, bool shared);
  /// Flushes and fences are this thread's from now on. What is emitted goes where it has gone before.
  void set_thread(std::uint32_t thread);

  [[nodiscard]] std::vector<std::unique_ptr<PythonMemory>> crash_states(std::uint64_t limit) const;
  [[nodiscard]] std::vector<std::unique_ptr<PythonMemory>> sample_crash_states(std::uint64_t count,
                                                                               std::uint64_t seed) const;
  [[nodiscard]] std::string word_state(memory::Address address) const;
  [[nodiscard]] pybind11::dict wear() const;

  /// An operation of the workload; `alone`: it begins when all before it has retired.
  void operation_begin(bool alone);
  void operation_end();
  /// What has been emitted since the last call, 16 bytes each, as TraceWriter takes them.
  [[nodiscard]] pybind11::bytes take_operations();
  [[nodiscard]] std::size_t emitted() const noexcept { return stream_.size(); }

  /// Throws ConfigError where it was borrowed and the call has returned.
  [[nodiscard]] memory::SimMemory& memory();
  [[nodiscard]] const memory::SimMemory& memory() const;
  /// A capsule, which is of use as long as this memory lives.
  [[nodiscard]] pybind11::capsule accesses();

 private:
  [[nodiscard]] std::uint64_t latch_word(memory::Address latch) const;

  friend class Borrowed;
  explicit PythonMemory(memory::SimMemory& borrowed) : memory_(&borrowed) {}

  std::optional<memory::SimMemory> own_;
  memory::SimMemory* memory_;  ///< null: it was borrowed, and has been given back
  memory::Stream stream_;
  SimAccesses accesses_{*this};
};

/// Lends a memory to Python for as long as it lives. Needs the GIL.
class Borrowed {
 public:
  explicit Borrowed(memory::SimMemory& memory)
      : memory_(new PythonMemory(memory)),
        object_(pybind11::cast(memory_, pybind11::return_value_policy::take_ownership)) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() { memory_->memory_ = nullptr; }

  [[nodiscard]] const pybind11::object& object() const noexcept { return object_; }

 private:
  PythonMemory* memory_;  ///< belongs to object_
  pybind11::object object_;
};

}  // namespace pmsim::bindings
