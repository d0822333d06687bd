#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "pmsim/core/error.hpp"
#include "pmsim/system/part.hpp"
#include "pmsim/workloads/registry.hpp"

namespace pmsim::system {

namespace {

constexpr std::array kParts{
    PartKind{"compute", make_compute},     PartKind{"log", make_log},
    PartKind{"block-log", make_block_log}, PartKind{"pages", make_pages},
    PartKind{"table", make_table},         PartKind{"engine", make_engine},
    PartKind{"recorded", make_recorded},   PartKind{"transactions", make_transactions_part},
};

[[nodiscard]] memory::SimOptions options_of(const machine::PlatformParams& platform, bool crash) {
  memory::SimOptions options = workloads::capacities_of(platform);
  if (crash)
    options.persistence =
        platform.controller.eadr != 0 ? memory::Persistence::kEadr : memory::Persistence::kAdr;
  return options;
}

/// Several parts on one memory.
class PartsService final : public Service {
 public:
  PartsService(const std::vector<PartSpec>& specs, const machine::PlatformParams& platform,
               std::uint32_t workers, std::uint64_t seed, bool crash, const Watch& watch)
      : memory_(options_of(platform, crash)), crash_(crash) {
    if (specs.empty())
      throw ConfigError("parts: a server needs at least one");
    std::map<std::string, int> names;
    for (std::size_t index = 0; index < specs.size(); ++index) {
      const PartSpec& spec = specs[index];
      workloads::Parameters parameters(spec.part, spec.parameters);
      const PartContext context{memory_, platform, workers, mix64(seed + index), watch, crash};
      std::unique_ptr<Part> part = kind_named(spec.part).make(parameters, context);
      parameters.require_all_read();
      const int number = ++names[spec.part];
      const std::string prefix = spec.part + (number > 1 ? std::to_string(number) : "") + ".";
      const std::vector<std::string_view> kinds = part->kinds();
      for (std::uint32_t kind = 0; kind < kinds.size(); ++kind) {
        names_.push_back(prefix + std::string(kinds[kind]));
        routes_.push_back({part.get(), kind});
      }
      prefixes_.push_back(prefix);
      parts_.push_back(std::move(part));
    }
  }

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {names_.begin(), names_.end()}; }

  std::uint64_t execute(std::uint32_t worker, const Request& request, memory::Stream& stream) override {
    if (request.kind >= routes_.size())
      throw ConfigError("request: this server has no kind " + std::to_string(request.kind));
    const auto& [part, kind] = routes_[request.kind];
    Request translated = request;
    translated.kind = kind;
    memory_.attach(stream, worker);
    stream.push(memory::OpKind::kOperationBegin, 0, 0, memory::kSerialising);
    const std::uint64_t result = part->execute(memory_, worker, translated);
    stream.push(memory::OpKind::kOperationEnd, 0, 0);
    memory_.detach();
    return result;
  }

  [[nodiscard]] std::uint64_t pmem_footprint() const override {
    std::uint64_t bytes = 0;
    for (const auto& part : parts_)
      bytes += part->pmem_bytes();
    return bytes;
  }

  [[nodiscard]] std::map<std::string, double> facts() const override {
    std::map<std::string, double> facts;
    for (std::size_t index = 0; index < parts_.size(); ++index) {
      for (const auto& [name, value] : parts_[index]->facts())
        facts[prefixes_[index] + name] = value;
    }
    return facts;
  }

  [[nodiscard]] bool shared() const override {
    return std::ranges::any_of(parts_, [](const auto& part) { return part->shared(); });
  }

  [[nodiscard]] bool shares_lines() const override {
    return std::ranges::any_of(parts_, [](const auto& part) { return part->shares_lines(); });
  }

  [[nodiscard]] memory::SimMemory* tracked_memory() override { return crash_ ? &memory_ : nullptr; }

  [[nodiscard]] std::string needing(memory::Medium medium) const override {
    for (std::size_t index = 0; index < parts_.size(); ++index) {
      if (parts_[index]->needs(medium))
        return prefixes_[index].substr(0, prefixes_[index].find('.'));
    }
    return {};
  }

  void restart(memory::SimMemory after, memory::Stream& stream) override {
    memory_ = std::move(after);
    memory_.attach(stream, 0);
    for (const auto& part : parts_)
      part->recover(memory_);
    memory_.detach();
  }

  [[nodiscard]] std::vector<std::uint64_t> present() override {
    for (const auto& part : parts_) {
      if (std::optional<std::vector<std::uint64_t>> found = part->present(memory_); found)
        return *found;
    }
    return Service::present();
  }

 private:
  struct Route {
    Part* part;
    std::uint32_t kind;
  };

  [[nodiscard]] static const PartKind& kind_named(std::string_view name) {
    std::string known;
    for (const PartKind& kind : kParts) {
      if (kind.name == name)
        return kind;
      known += (known.empty() ? "" : ", ") + std::string(kind.name);
    }
    throw ConfigError("part \"" + std::string(name) + "\" is unknown; known: " + known);
  }

  memory::SimMemory memory_;
  bool crash_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::string> prefixes_;
  std::vector<std::string> names_;
  std::vector<Route> routes_;
};

/// A closed-loop workload of the core, one operation per request.
class WorkloadService final : public Service {
 public:
  explicit WorkloadService(std::unique_ptr<workloads::Workload> workload) : workload_(std::move(workload)) {}

  [[nodiscard]] std::vector<std::string_view> kinds() const override { return {"operation"}; }

  std::uint64_t execute(std::uint32_t worker, const Request&, memory::Stream& stream) override {
    if (worker >= workload_->threads())
      throw ConfigError("workers: the workload has " + std::to_string(workload_->threads()) + " threads");
    workload_->refill(worker, stream);
    std::size_t begins = 0;
    std::size_t ends = 0;
    for (std::size_t index = 0; index < stream.size(); ++index) {
      const memory::MicroOp& op = stream.data()[index];
      begins += op.kind == memory::OpKind::kOperationBegin && (op.flags & memory::kSerialising) != 0 ? 1 : 0;
      ends += op.kind == memory::OpKind::kOperationEnd ? 1 : 0;
    }
    if (begins != 1 || ends != 1) {
      throw ConfigError(
          "workload: its operations do not come one by one, each waiting for those before it; "
          "choose another workload, or timed = 1");
    }
    return 0;
  }

  [[nodiscard]] std::uint64_t pmem_footprint() const override { return workload_->pmem_footprint(); }
  [[nodiscard]] bool shares_lines() const override { return workload_->shares_lines(); }
  [[nodiscard]] std::map<std::string, double> facts() const override { return workload_->facts(); }

 private:
  std::unique_ptr<workloads::Workload> workload_;
};

}  // namespace

std::span<const PartKind> part_kinds() noexcept { return kParts; }

std::unique_ptr<Service> make_service(const std::vector<PartSpec>& parts,
                                      const machine::PlatformParams& platform, std::uint32_t workers,
                                      std::uint64_t seed, bool crash, const Watch& watch) {
  return std::make_unique<PartsService>(parts, platform, workers, seed, crash, watch);
}

std::unique_ptr<Service> make_workload_service(
    std::string_view workload, const std::map<std::string, workloads::Parameters::Value>& parameters,
    const machine::PlatformParams& platform, std::uint64_t seed, const Watch& watch) {
  return std::make_unique<WorkloadService>(workloads::make_workload(
      workload, workloads::Parameters(std::string(workload), parameters), platform, seed, watch));
}

}  // namespace pmsim::system
