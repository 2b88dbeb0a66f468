#!/usr/bin/env bash
# quickstart.sh: from a bare Debian to a trained model: packages, release build, then a job of a minute.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
build release --target mpi4dl_program

# Five ranks: four tiles of every image, and one rank for the layers behind them.
run=build/quickstart
rm -rf "$run"
job=(mpirun -np 5 build/release/bin/mpi4dl train --model amoebanet --num-layers 3 --num-filters 32
     --image-size 128 --split-size 2 --num-spatial-parts 4 --slice-method square
     --num-classes 4 --num-images 640 --val-fraction 0.25 --batch-size 8 --num-epochs 4
     --optimizer adam --lr 0.001 --lr-warmup 30 --lr-schedule cosine
     --run-dir "$run" --checkpoint-dir "$run/checkpoints")
echo "==> ${job[*]}"
"${job[@]}"

python3 - "$run" <<'PYTHON'
import json, sys

lines = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
steps = [line for line in lines if line["kind"] == "step"]
accuracy = [line["accuracy"] for line in lines if line["kind"] == "evaluation"][-1]

def loss(epoch):
    losses = [step["loss"] for step in steps if step["epoch"] == epoch]
    return sum(losses) / len(losses)

last = steps[-1]["epoch"]
print(f"""
==> What happened
AmoebaNet {"learned" if accuracy > 0.9 else "begins"} to tell four kinds of waves in noise apart. Ranks 0 to 3 each held a quarter of every
image and exchanged the pixels at its edges, rank 4 held the last layers; loss and gradients were those
of one process. The loss fell from {loss(1):.3f} in epoch 1 to {loss(last):.3f} in epoch {last}, and {100 * accuracy:.0f} % of the images that
were held out are classified rightly. Metrics and checkpoints are in {sys.argv[1]}.""")
PYTHON

cat <<TEXT

==> What next: type in $PWD
source scripts/env.sh       # finds mpi4dl; lets root run mpirun, and more ranks than cores

# The same layout against one process, number by number:
mpirun -np 5 mpi4dl verify --model amoebanet --num-layers 3 --num-filters 32 --image-size 128 \\
  --num-classes 4 --batch-size 2 --split-size 2 --num-spatial-parts 4

# What the trained model says of each image that was held out, on one rank:
mpi4dl predict --checkpoint $run/checkpoints --num-images 640 --val-fraction 0.25 --out $run/predictions.csv

# What a large image takes on each rank, without running anything:
mpi4dl plan --model amoebanet --num-layers 6 --num-filters 64 --image-size 4096 --batch-size 1 \\
  --split-size 2 --num-spatial-parts 4

# Why whole images: three ways to train on large ones, in eleven minutes (docs/whole-images.md):
examples/whole-images.sh
TEXT
