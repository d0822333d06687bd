#!/bin/sh
# native_tests.sh BUILD_DIRECTORY [build]: builds and runs, or only builds, the GoogleTest tests of a configured build.
set -eu
build=$1
what=${2:-run}

# Reconfigures where sources have come or gone; says so where GoogleTest is missing.
if ! cmake --build "$build" --target help | grep -q pmsim_tests; then
  echo "native tests are skipped: GoogleTest is not installed (Debian and Ubuntu: apt install libgtest-dev)"
  exit 0
fi
cmake --build "$build" --target pmsim_tests
[ "$what" = build ] || ctest --test-dir "$build" --output-on-failure --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-2}"
