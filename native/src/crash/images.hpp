#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pmsim/core/random.hpp"
#include "pmsim/memory/durability.hpp"

namespace pmsim::crash {

/// Calls `use` with every legal image of the tracker where there are at most `most`, otherwise with `samples`
/// drawn ones. Returns whether they were all.
template <typename Use>
bool for_images(const memory::DurabilityTracker& tracker, std::uint64_t most, std::uint64_t samples,
                Random& random, memory::DurableImage& image, Use use) {
  if (tracker.is_coupled()) {
    if (const auto images = tracker.enumerate(most)) {
      for (const memory::DurableImage& one : *images)
        use(one);
      return true;
    }
  } else if (const auto cells = tracker.cells(most)) {
    std::vector<std::size_t> choice(cells->size(), 0);
    image.resize(cells->size());
    for (std::size_t cell = 0; cell < cells->size(); ++cell) {
      image[cell].address = (*cells)[cell].address;
      image[cell].bytes = (*cells)[cell].contents.front().bytes;
    }
    for (;;) {
      use(image);
      std::size_t cell = 0;
      for (; cell < cells->size(); ++cell) {
        const auto& contents = (*cells)[cell].contents;
        const bool wraps = ++choice[cell] == contents.size();
        if (wraps)
          choice[cell] = 0;
        image[cell].bytes = contents[choice[cell]].bytes;
        if (!wraps)
          break;
      }
      if (cell == cells->size())
        return true;
    }
  }
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    tracker.sample_corners(random, image);
    use(image);
  }
  return false;
}

}  // namespace pmsim::crash
