#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/trace/reader.hpp"
#include "pmsim/trace/writer.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

using memory::MicroOp;

std::vector<std::string> micro_op_kinds() {
  std::vector<std::string> names;
  for (int kind = 0; kind < memory::kOpKinds; ++kind) {
    names.emplace_back(trace::name_of(static_cast<memory::OpKind>(kind)));
  }
  return names;
}

/// Chunk `index`: its thread, its micro-operations as they lie in memory, and the sizes of its batches.
std::tuple<std::uint32_t, py::bytes, std::vector<std::uint32_t>> read_chunk(trace::TraceReader& reader,
                                                                            std::size_t index) {
  if (index >= reader.info().chunks.size()) {
    throw py::index_error("the trace has " + std::to_string(reader.info().chunks.size()) + " chunks");
  }
  memory::Stream stream;
  std::vector<std::uint32_t> batches;
  {
    const py::gil_scoped_release released;
    reader.read_chunk(index, stream, batches);
  }
  const py::bytes ops(reinterpret_cast<const char*>(stream.data()), stream.size() * sizeof(MicroOp));
  return {reader.info().chunks[index].thread, ops, batches};
}

/// TraceWriter for callers who may give anything.
class FileWriter {
 public:
  FileWriter(const std::filesystem::path& path, std::uint32_t threads, const std::string& provenance,
             trace::RunPlan plan)
      : writer_(std::make_unique<trace::TraceWriter>(path, threads, provenance, std::move(plan))),
        threads_(threads) {}

  void append(std::uint32_t thread, const py::bytes& given, const std::vector<std::uint32_t>& batches) {
    const std::string_view bytes(given);
    if (!writer_ || thread >= threads_ || bytes.size() % sizeof(MicroOp) != 0)
      throw py::value_error(
          "a thread that the trace has, and whole micro-operations of 16 bytes, before finish()");
    std::vector<MicroOp> ops(bytes.size() / sizeof(MicroOp));
    if (!ops.empty())
      std::memcpy(ops.data(), bytes.data(), bytes.size());
    for (const MicroOp& op : ops) {
      if (static_cast<std::size_t>(op.kind) >= memory::kOpKinds)
        throw py::value_error("a micro-operation of unknown kind");
    }
    std::span<const MicroOp> left(ops);
    for (const std::uint32_t size : batches) {
      if (size > left.size())
        throw py::value_error("the batches exceed the micro-operations");
      writer_->append(thread, left.first(size));
      left = left.subspan(size);
    }
    if (!left.empty())
      throw py::value_error("the batches do not fill the micro-operations");
  }

  void finish() {
    if (!writer_)
      throw py::value_error("the trace is finished already");
    writer_->finish();
    writer_.reset();
  }
  /// Removes what has been written, unless finished.
  void discard() noexcept { writer_.reset(); }

 private:
  std::unique_ptr<trace::TraceWriter> writer_;
  std::uint32_t threads_;
};

}  // namespace

void bind_trace_file(py::module_& module) {
  module.def("micro_op_kinds", &micro_op_kinds, "Names of the kinds of micro-operations, by their numbers.");
  py::class_<trace::TraceReader>(
      module, "TraceReader", "Reads a trace chunk by chunk. Raises ConfigError for whatever is wrong with it.")
      .def(py::init<std::filesystem::path>(), py::arg("path"))
      .def_property_readonly("chunks",
                             [](const trace::TraceReader& reader) { return reader.info().chunks.size(); })
      .def("chunk", &read_chunk, py::arg("index"),
           "The thread of a chunk, its micro-operations of 16 bytes, the sizes of its batches.");
  py::class_<FileWriter>(module, "TraceWriter",
                         "Writes a trace; the file appears under its name in finish(). Raises ConfigError.")
      .def(py::init([](const std::filesystem::path& path, std::uint32_t threads, const std::string& provenance,
                       std::uint64_t seed, std::uint64_t warmup, std::uint64_t untimed, std::uint64_t measured,
                       std::uint64_t footprint, bool shares_lines, std::vector<std::uint32_t> groups) {
             return FileWriter(path, threads, provenance,
                               {.seed = seed,
                                .warmup_operations = warmup,
                                .untimed_operations = untimed,
                                .measured_operations = measured,
                                .pmem_footprint = footprint,
                                .shares_lines = shares_lines,
                                .group_of_thread = std::move(groups)});
           }),
           py::arg("path"), py::arg("threads"), py::arg("provenance"), py::arg("seed"),
           py::arg("warmup_operations"), py::arg("untimed_operations"), py::arg("measured_operations"),
           py::arg("pmem_footprint"), py::arg("shares_lines"), py::arg("group_of_thread"))
      .def("append", &FileWriter::append, py::arg("thread"), py::arg("operations"), py::arg("batches"),
           "Batches of a thread, in its program order: micro-operations of 16 bytes, and how many each has.")
      .def("finish", &FileWriter::finish, "Writes what is left and gives the file its name.")
      .def("discard", &FileWriter::discard, "Removes an unfinished file.");
}

}  // namespace pmsim::bindings
