#!/usr/bin/env bash
# quickstart.sh: from a bare Debian to a running program: packages, release build, then the main job.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build release --target mpi4dl_program

# Five ranks: four tiles of every image, and one rank for the layers behind them.
job=(mpirun -np 5 build/release/bin/mpi4dl train --model amoebanet --num-layers 3 --num-filters 32
     --image-size 128 --split-size 2 --num-spatial-parts 4 --slice-method square
     --num-classes 4 --num-images 160 --batch-size 8 --num-epochs 3
     --lr 0.01 --lr-warmup 5 --lr-schedule cosine)
echo "==> ${job[*]}"
"${job[@]}"
