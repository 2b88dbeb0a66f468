#!/usr/bin/env bash
# test.sh [CTEST_OPTION...]: packages, build, then all tests. MPI4DL_PRESET chooses the build:
# release (default), debug or asan. Tests that passed are not run again until a program, a library or
# a test has changed; with an option, such as --schedule-random, they always are.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
preset=${MPI4DL_PRESET:-release}
passed=build/$preset/tests-passed

# One line for everything that decides how the tests end.
fingerprint() {
  {
    find "build/$preset/bin" tests -type f
    ldd "build/$preset/bin/mpi4dl" | awk '/=>/ { print $3 }'
  } | sort | xargs sha256sum | sha256sum
}

scripts/setup.sh
build "$preset"

echo "==> test build/$preset"
if [ $# -eq 0 ] && [ "$(fingerprint)" = "$(cat "$passed" 2>/dev/null)" ]; then
  echo "nothing has changed since all tests passed"
  exit
fi
rm -f "$passed"
ctest --preset "$preset" --parallel 2 "$@"
[ $# -gt 0 ] || fingerprint >"$passed"
