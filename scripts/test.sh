#!/usr/bin/env bash
# test.sh [CTEST_OPTION...]: packages, build, then all tests. MPI4DL_PRESET chooses the build:
# release (default), debug or asan.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
preset=${MPI4DL_PRESET:-release}

scripts/setup.sh
build "$preset"

echo "==> test build/$preset"
ctest --preset "$preset" --parallel 2 "$@"
