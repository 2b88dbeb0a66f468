#!/usr/bin/env bash
# make.sh PROGRAM: how the checkpoints beside it were made, by an mpi4dl that writes format version 1 (commit d5bca13).
# For each optimizer: a checkpoint behind the first of two epochs, and the losses of the second, which
# tests/cli/checkpoint_test.sh expects of every later program that resumes from it. Two channels of the network are alive and
# all other weights are zero, so that the files are small.
set -euo pipefail
export XZ_OPT=-9e
cd "$(dirname "$0")"
program=$(realpath "$1")
python=$(realpath ../../../examples/python)
here=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export OMP_NUM_THREADS=1
"$program" --config "$here/run.ini" train --num-epochs 1 --checkpoint-dir any
"$program" export --checkpoint any --to safetensors --out any.safetensors
PYTHONPATH=$python /usr/bin/python3 - <<'END'
import torch
from weights import read_weights
weights = read_weights("any.safetensors")
for name, values in weights.items():
    alive = torch.zeros_like(values)
    if values.dim() == 4:
        alive[:2, :2] = 1
    elif name.endswith("linear.weight"):
        alive[:, :2] = 1
    else:
        alive[:2] = 1
    weights[name] = values * alive
    if "running" in name:
        weights[name] = torch.full_like(values, name.endswith("var"))
torch.save(weights, "start.pt")
END
for optimizer in sgd adam; do
  run=("$program" --config "$here/run.ini" train --optimizer "$optimizer" --checkpoint-dir "$optimizer" --keep 1)
  "${run[@]}" --weights start.pt --num-epochs 1
  tar --sort=name --owner=0 --group=0 --mtime=@0 -cJf "$here/$optimizer.tar.xz" --exclude='.*' "$optimizer"
  "${run[@]}" --resume auto --num-epochs 2 --json-log "$here/$optimizer.log"
done
