#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.hpp"
#include "pmsim/core/error.hpp"
#include "pmsim/core/random.hpp"
#include "pmsim/engines/engine.hpp"
#include "pmsim/memory/sim_memory.hpp"

namespace py = pybind11;

namespace pmsim::bindings {

namespace {

using engines::EngineOptions;
using memory::SimMemory;

std::span<const std::byte> view(const py::bytes& data) {
  const std::string_view text = data;
  return std::as_bytes(std::span(text.data(), text.size()));
}
py::bytes to_bytes(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

/// EngineOptions by the names of its members. Throws ConfigError for an unknown name or a wrong type.
EngineOptions to_options(const std::string& engine, const py::dict& values) {
  EngineOptions options;
  options.engine = engine;
  using Field = std::variant<std::uint64_t*, std::uint32_t*, bool*, std::string*, std::array<double, 4>*>;
  const std::map<std::string, Field> fields{
      {"dram_bytes", &options.dram_bytes},
      {"pmem_bytes", &options.pmem_bytes},
      {"ssd_bytes", &options.ssd_bytes},
      {"page_bytes", &options.page_bytes},
      {"cache_line_grained", &options.cache_line_grained},
      {"mini_pages", &options.mini_pages},
      {"pointer_swizzling", &options.pointer_swizzling},
      {"leaf_layout", &options.leaf_layout},
      {"admission_entries", &options.admission_entries},
      {"migration", &options.migration},
      {"page_write", &options.page_write},
      {"log_device", &options.log_device},
      {"log_algorithm", &options.log_algorithm},
      {"log_layout", &options.log_layout},
      {"log_bytes", &options.log_bytes},
      {"logs", &options.logs},
      {"library_cycles", &options.library_cycles},
      {"system_call_cycles", &options.system_call_cycles},
      {"system_call_copies", &options.system_call_copies},
      {"cpu_cycles", &options.cpu_cycles},
      {"transaction_cycles", &options.transaction_cycles},
      {"threads", &options.threads},
      {"latches", &options.latches},
      {"fixes", &options.fixes},
      {"seed", &options.seed},
      {"debug_pages", &options.debug_pages},
  };
  for (const auto& [name, value] : values) {
    const auto key = py::cast<std::string>(name);
    const auto field = fields.find(key);
    if (field == fields.end()) {
      std::string known;
      for (const auto& [other, unused] : fields)
        known += (known.empty() ? "" : ", ") + other;
      throw ConfigError("Engine: " + key + " is unknown; known: " + known);
    }
    try {
      std::visit([&value = value](
                     auto* member) { *member = py::cast<std::remove_pointer_t<decltype(member)>>(value); },
                 field->second);
    } catch (const py::cast_error&) {
      throw ConfigError("Engine: " + key + " = " + py::cast<std::string>(py::repr(value)) +
                        ": not of its type");
    }
  }
  return options;
}

class ListSource final : public engines::RowSource {
 public:
  ListSource(const std::vector<std::pair<std::uint64_t, py::bytes>>& rows, std::size_t payload_bytes)
      : rows_(rows) {
    for (const auto& [key, payload] : rows) {
      if (view(payload).size() != payload_bytes) {
        throw ConfigError("Engine.load: the payload of key " + std::to_string(key) + " has " +
                          std::to_string(view(payload).size()) + " bytes, must be " +
                          std::to_string(payload_bytes));
      }
    }
  }
  [[nodiscard]] std::uint64_t rows() const override { return rows_.size(); }
  std::uint64_t next(std::span<std::byte> payload) override {
    const auto bytes = view(rows_[next_].second);
    std::copy(bytes.begin(), bytes.end(), payload.begin());
    return rows_[next_++].first;
  }

 private:
  const std::vector<std::pair<std::uint64_t, py::bytes>>& rows_;
  std::size_t next_ = 0;
};

/// A storage engine on a SimMemory of its own, for tests and exploration: one call per operation, untimed.
class PythonEngine {
 public:
  PythonEngine(const std::string& name, const py::dict& options, std::uint64_t seed, bool persistence)
      : options_(to_options(name, options)),
        random_(seed),
        memory_(std::make_unique<SimMemory>(memory::SimOptions{
            .persistence = persistence ? memory::Persistence::kAdr : memory::Persistence::kUntracked})),
        engine_(engines::engine_named<SimMemory>(name).create(*memory_, options_)),
        tracked_(persistence) {}

  std::uint16_t load(const std::string& name, std::uint32_t key_bytes, std::uint32_t payload_bytes,
                     const std::vector<std::pair<std::uint64_t, py::bytes>>& rows, double fill) {
    need(false, "load");
    ListSource source(rows, payload_bytes);
    return engine_->load(*memory_, {name, key_bytes, payload_bytes}, source, fill);
  }
  void begin() {
    need(false, "begin");
    engine_->begin(*memory_);
    open_ = true;
  }
  void commit() {
    need(true, "commit");
    engine_->commit(*memory_);
    open_ = false;
  }
  void abort() {
    need(true, "abort");
    engine_->abort(*memory_);
    open_ = false;
  }
  [[nodiscard]] std::optional<py::bytes> read(std::uint16_t table, std::uint64_t key, std::uint32_t offset,
                                              std::uint32_t bytes) {
    need(true, "read");
    std::vector<std::byte> into(bytes);
    if (!engine_->read(*memory_, table, key, offset, into))
      return std::nullopt;
    return to_bytes(into);
  }
  bool update(std::uint16_t table, std::uint64_t key, std::uint32_t offset, const py::bytes& data) {
    need(true, "update");
    return engine_->update(*memory_, table, key, offset, view(data));
  }
  bool insert(std::uint16_t table, std::uint64_t key, const py::bytes& payload) {
    need(true, "insert");
    return engine_->insert(*memory_, table, key, view(payload));
  }
  bool erase(std::uint16_t table, std::uint64_t key) {
    need(true, "erase");
    return engine_->erase(*memory_, table, key);
  }
  [[nodiscard]] std::vector<std::pair<std::uint64_t, py::bytes>> scan(std::uint16_t table, std::uint64_t from,
                                                                      std::uint64_t limit, std::uint32_t offset,
                                                                      std::uint32_t bytes, bool full_pages) {
    need(true, "scan");
    std::vector<std::pair<std::uint64_t, py::bytes>> rows;
    engine_->scan(*memory_, table, from, limit, offset, bytes,
                  full_pages ? engines::ScanMode::kFullPages : engines::ScanMode::kGrained,
                  [&rows](std::uint64_t key, std::span<const std::byte> row) {
                    rows.emplace_back(key, to_bytes(row));
                    return true;
                  });
    return rows;
  }
  void checkpoint() {
    need(false, "checkpoint");
    engine_->checkpoint(*memory_);
  }
  void restart(bool crash) {
    if (!tracked_)
      throw ConfigError("Engine.restart: what is durable is not tracked; create it with persistence=True");
    if (!crash) {
      need(false, "restart");
      engine_->shutdown(*memory_);
    }
    const engines::EnginePlace place = engine_->place();
    auto after = std::make_unique<SimMemory>(memory_->crash(memory_->durability().sample(random_)));
    engine_ = engines::engine_named<SimMemory>(options_.engine).restart(*after, options_, place);
    memory_ = std::move(after);
    open_ = false;
  }
  [[nodiscard]] std::map<std::string, double> counters() const { return engine_->counters(); }
  [[nodiscard]] std::string check() {
    need(false, "check");
    return engine_->check(*memory_);
  }

 private:
  void need(bool transaction, const char* what) const {
    if (transaction != open_) {
      throw ConfigError(std::string("Engine.") + what +
                        (transaction ? ": only inside of a transaction; call begin() first"
                                     : ": not inside of a transaction; call commit() or abort() first"));
    }
  }

  EngineOptions options_;
  Random random_;
  std::unique_ptr<SimMemory> memory_;
  std::unique_ptr<engines::Engine<SimMemory>> engine_;
  bool tracked_;
  bool open_ = false;
};

}  // namespace

void bind_engines(py::module_& module) {
  module.def(
      "engines",
      [] {
        constexpr std::array<const char*, 3> kTiers{"dram", "pmem", "ssd"};
        py::dict kinds;
        for (const auto& kind : engines::engine_kinds<SimMemory>())
          kinds[py::str(kind.name)] =
              py::make_tuple(kind.title, kTiers.at(static_cast<std::size_t>(kind.home)));
        return kinds;
      },
      "The storage engines: by name, the title and the tier that is home to all pages (dram, pmem or ssd).");
  py::class_<PythonEngine>(module, "Engine",
                           "A storage engine on simulated memory, for tests and exploration: untimed.")
      .def(py::init<const std::string&, const py::dict&, std::uint64_t, bool>(), py::arg("name"), py::kw_only(),
           py::arg("options"), py::arg("seed") = 1, py::arg("persistence") = true,
           "options: members of EngineOptions by name, bytes in bytes. seed: which durable image a crash "
           "leaves.")
      .def("load", &PythonEngine::load, py::arg("name"), py::kw_only(), py::arg("key_bytes"),
           py::arg("payload_bytes"), py::arg("rows"), py::arg("fill") = 0.66,
           "A new table with these (key, payload), keys ascending; its number. Durable on return.")
      .def("begin", &PythonEngine::begin)
      .def("commit", &PythonEngine::commit, "Durable on return.")
      .def("abort", &PythonEngine::abort)
      .def("read", &PythonEngine::read, py::arg("table"), py::arg("key"), py::arg("offset"), py::arg("bytes"),
           "Bytes of the payload, or None where there is no such key.")
      .def("update", &PythonEngine::update, py::arg("table"), py::arg("key"), py::arg("offset"),
           py::arg("data"), "False where there is no such key.")
      .def("insert", &PythonEngine::insert, py::arg("table"), py::arg("key"), py::arg("payload"),
           "False where the key exists.")
      .def("erase", &PythonEngine::erase, py::arg("table"), py::arg("key"), "False where there is no such key.")
      .def("scan", &PythonEngine::scan, py::arg("table"), py::arg("first"), py::arg("limit"), py::arg("offset"),
           py::arg("bytes"), py::arg("full_pages") = false,
           "At most limit rows (key, part of the payload) from the first key >= first on.")
      .def("checkpoint", &PythonEngine::checkpoint)
      .def("restart", &PythonEngine::restart, py::kw_only(), py::arg("crash"),
           "Restarts on what a crash, at this moment, or a clean shutdown leaves. Runs recovery.")
      .def("counters", &PythonEngine::counters, "Since the start or restart, by name.")
      .def("check", &PythonEngine::check, "What is wrong with the data structures, or an empty string.");
}

}  // namespace pmsim::bindings
