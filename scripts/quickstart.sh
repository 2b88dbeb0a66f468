#!/usr/bin/env bash
# quickstart.sh: from a bare Debian to a running program: packages, release build, then the main job.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build release --target mpi4dl_program

job=(mpirun -np 4 build/release/bin/mpi4dl bench halo --image-size 1024 --in-channels 3
     --halo-len 3 --num-spatial-parts 4 --slice-method square --validate)
echo "==> ${job[*]}"
"${job[@]}"
