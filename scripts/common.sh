# shellcheck shell=bash
# What the scripts share; sourced first. Leaves the caller in the project's folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build

# shellcheck source-path=SCRIPTDIR source=env.sh
source scripts/env.sh

# step TEXT LOG COMMAND...: says TEXT, runs COMMAND with its output in build/LOG.log, and shows the
# end of that file if it fails.
step() {
  local text=$1 log=build/$2.log
  shift 2
  echo "==> $text"
  "$@" >"$log" 2>&1 </dev/null || {
    local code=$?
    tail -n 40 "$log" >&2
    echo "failed: $* (everything it said: $log)" >&2
    return "$code"
  }
}

# build PRESET CMAKE_BUILD_OPTIONS...: configures and builds; does next to nothing the second time.
build() {
  local preset=$1
  shift
  step "configure build/$preset" "configure-$preset" cmake --preset "$preset"
  step "build build/$preset" "build-$preset" cmake --build --preset "$preset" "$@"
}
