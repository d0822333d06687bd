#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pmsim/crash/registry.hpp"
#include "python_memory.hpp"

namespace pmsim::bindings {

/// An object of Python that may be let go by whoever does not have the GIL.
class Held {
 public:
  explicit Held(pybind11::object object) : object_(std::move(object)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    const pybind11::gil_scoped_acquire acquired;
    object_ = pybind11::object();
  }
  [[nodiscard]] const pybind11::object& get() const noexcept { return object_; }

 private:
  pybind11::object object_;
};

/// What the recovery of a program in Python has found.
class PyRecovered final : public crash::Recovered {
 public:
  explicit PyRecovered(pybind11::object found) : found_(std::move(found)) {}
  [[nodiscard]] const pybind11::object& found() const noexcept { return found_.get(); }

 private:
  Held found_;
};

/// A program in Python under the crash checker: each call is one of its methods (pmsim/prototype/subject.py).
/// The checker runs without the GIL.
class PyProgram final : public crash::Subject {
 public:
  /// Needs the GIL.
  explicit PyProgram(pybind11::object program)
      : overlaps_(program.attr("overlaps").cast<bool>()), program_(std::move(program)) {}

  void create(memory::SimMemory& memory) override {
    const pybind11::gil_scoped_acquire acquired;
    const Borrowed lent(memory);
    call("create", lent.object());
  }
  [[nodiscard]] std::uint32_t operations() const override {
    const pybind11::gil_scoped_acquire acquired;
    return call("count").cast<std::uint32_t>();
  }
  void run(memory::SimMemory& memory, std::uint32_t index) override {
    const pybind11::gil_scoped_acquire acquired;
    const Borrowed lent(memory);
    call("run", lent.object(), index);
  }
  [[nodiscard]] std::unique_ptr<crash::Recovered> recover(memory::SimMemory& memory) const override {
    const pybind11::gil_scoped_acquire acquired;
    const Borrowed lent(memory);
    return std::make_unique<PyRecovered>(call("recover", lent.object()));
  }
  [[nodiscard]] std::string check(const crash::Recovered& recovered, memory::SimMemory&) const override {
    const pybind11::gil_scoped_acquire acquired;
    return call("check", dynamic_cast<const PyRecovered&>(recovered).found()).cast<std::string>();
  }
  [[nodiscard]] std::unique_ptr<crash::Subject> resume(crash::Recovered& recovered) const override {
    const pybind11::gil_scoped_acquire acquired;
    pybind11::object resumed = call("resume", dynamic_cast<const PyRecovered&>(recovered).found());
    return resumed.is_none() ? nullptr : std::make_unique<PyProgram>(std::move(resumed));
  }
  [[nodiscard]] std::uint64_t promises() const override {
    if (!overlaps_)
      return 0;
    const pybind11::gil_scoped_acquire acquired;
    return call("changes").cast<std::uint64_t>();
  }
  [[nodiscard]] std::string describe(std::uint32_t index) const override {
    const pybind11::gil_scoped_acquire acquired;
    return call("describe", index).cast<std::string>();
  }

 private:
  template <typename... Arguments>
  pybind11::object call(const char* method, const Arguments&... arguments) const {
    return program_.get().attr(method)(arguments...);
  }

  bool overlaps_;  ///< has threads, so what is promised changes within an operation of the checker
  Held program_;
};

/// What makes programs in Python, and the points that they have used so far. Constructed, and let go, with the
/// GIL; its address must not change.
class PyProgramKind {
 public:
  PyProgramKind(std::string name, const pybind11::object& make, const pybind11::object& points)
      : name_(std::move(name)), make_(make), points_(points) {
    kind_.name = name_;
    kind_.title = name_;
    kind_.make = [this](std::uint64_t seed, crash::Scale scale) { return program(seed, scale); };
  }
  PyProgramKind(const PyProgramKind&) = delete;
  PyProgramKind& operator=(const PyProgramKind&) = delete;

  [[nodiscard]] const crash::SubjectKind& kind() const noexcept { return kind_; }

 private:
  /// A counter-example begins with a new program, so it has the names of all points that were met until then.
  std::unique_ptr<crash::Subject> program(std::uint64_t seed, crash::Scale scale) {
    const pybind11::gil_scoped_acquire acquired;
    names_ = points_().cast<std::vector<std::string>>();
    sites_.clear();
    for (const std::string& name : names_)
      sites_.push_back({.id = static_cast<memory::Site>(sites_.size() + 1), .name = name});
    kind_.sites = sites_;
    return std::make_unique<PyProgram>(make_(seed, scale == crash::Scale::kSmall));
  }

  std::string name_;
  pybind11::object make_;
  pybind11::object points_;
  std::vector<std::string> names_;
  std::vector<blocks::SiteInfo> sites_;
  crash::SubjectKind kind_;
};

}  // namespace pmsim::bindings
