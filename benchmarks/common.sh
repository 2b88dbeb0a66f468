# shellcheck shell=bash
# What the benchmarks share; sourced first. Finds the program: the one that MPI4DL names, the one of
# this project's release build, or the one on the PATH.
set -euo pipefail

program=${MPI4DL:-$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../build/release/bin/mpi4dl}
if [ ! -x "$program" ] && [ -z "${MPI4DL:-}" ]; then
  program=$(command -v mpi4dl) || {
    echo "${0##*/}: mpi4dl is neither built (scripts/quickstart.sh) nor on the PATH;" \
      "set MPI4DL to its path" >&2
    exit 2
  }
fi
