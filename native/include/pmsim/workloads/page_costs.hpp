#pragma once

#include "pmsim/blocks/page/cost_model.hpp"
#include "pmsim/machine/params.hpp"

namespace pmsim::workloads {

/// The device figures of the hybrid page flush's cost model, from the parameters of the platform alone.
[[nodiscard]] blocks::page::CostModel page_costs(const machine::PlatformParams& platform);

}  // namespace pmsim::workloads
