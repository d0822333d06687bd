#pragma once

#include <memory>
#include <string_view>

#include "pmsim/engines/engine.hpp"

namespace pmsim::engines {

/// The row of an engine whose class is `Made`: made from (memory, options), restarted from (memory, options,
/// place).
template <memory::Memory M, typename Made>
[[nodiscard]] EngineKind<M> engine_kind(std::string_view name, std::string_view title, memory::Medium home) {
  return {name, title, home,
          [](M& memory, const EngineOptions& options) -> std::unique_ptr<Engine<M>> {
            return std::make_unique<Made>(memory, options);
          },
          [](M& memory, const EngineOptions& options, const EnginePlace& place) -> std::unique_ptr<Engine<M>> {
            check_restart(options, place);
            return std::make_unique<Made>(memory, options, place);
          }};
}

// One declaration per engine; each is defined, for both memories, in its own file.
template <memory::Memory M>
[[nodiscard]] EngineKind<M> main_memory_kind();
template <memory::Memory M>
[[nodiscard]] EngineKind<M> nvm_direct_kind();
template <memory::Memory M>
[[nodiscard]] EngineKind<M> nvm_undo_kind();
template <memory::Memory M>
[[nodiscard]] EngineKind<M> fptree_kind();
/// basic-nvm-bm, ssd-bm, three-tier or spitfire: one class, configured by the name in the options.
template <memory::Memory M>
[[nodiscard]] EngineKind<M> buffered_kind(std::string_view name, std::string_view title, memory::Medium home);

}  // namespace pmsim::engines
