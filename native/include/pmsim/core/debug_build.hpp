#pragma once

namespace pmsim {

/// Whether checks that a run cannot afford are on unless they are asked for: builds with assertions, such as
/// that of `make test-sanitize`.
#ifdef NDEBUG
inline constexpr bool kDebugBuild = false;
#else
inline constexpr bool kDebugBuild = true;
#endif

}  // namespace pmsim
