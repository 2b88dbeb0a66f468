#!/usr/bin/env bash
# whole-images.sh [FOLDER]: trains one model in three ways on images that are large because what
# matters in them is small, and compares them: whole images on tiles, the images shrunk, and patches.
# All of it lies in FOLDER (build/whole-images if not given). Whoever stops it may start it again: what is
# finished is not done again, and training resumes from its last checkpoint. docs/whole-images.md
# shows what comes out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/env.sh
source "$here/../scripts/env.sh"
folder=${1:-$here/../build/whole-images}
mkdir -p "$folder"
cd "$folder"

images=1000 batch=8   # 125 updates: each image is seen once
patches=16            # of an image in each update: as many pixels as it has
model=(--model amoebanet --num-layers 3 --num-filters 32 --num-classes 4 --app medical)
learning=(--optimizer adam --lr 0.003 --lr-warmup 20 --lr-schedule cosine)

# once FOLDER COMMAND... FOLDER.partial: makes a folder that gets its name when it is complete.
once() {
  [ -d "$1" ] && return
  rm -rf "$1.partial"
  "${@:2}"
  mv "$1.partial" "$1"
}

# learn NAME COMMAND...: a training run with its metrics and checkpoints in the folder NAME.
learn() {
  [ -f "$1/finished" ] && return
  echo "==> $1: ${*:2}"
  "${@:2}" --run-dir "$1" --checkpoint-dir "$1/checkpoints" --checkpoint-every 25steps --keep 1 --resume auto
  touch "$1/finished"
}

once glyphs mpirun -np 4 mpi4dl data make-glyphs --count $images --val-count 200 --out glyphs.partial

learn whole mpirun -np 4 mpi4dl train "${model[@]}" "${learning[@]}" --datapath glyphs --image-size 1024 \
  --num-spatial-parts 4 --split-size 1 --batch-size $batch --eval-every 25steps

learn shrunk mpi4dl train "${model[@]}" "${learning[@]}" --datapath glyphs --image-size 256 --fit resize \
  --batch-size $batch --eval-every 25steps

# Patches at random places carry the label of their image; no patch is seen twice. Images to be
# judged are covered by patches side by side.
once patches-train mpirun -np 4 mpi4dl data cut-patches --datapath glyphs/train --patch-size 256 \
  --per-image $patches --out patches-train.partial
once patches-val mpirun -np 4 mpi4dl data cut-patches --datapath glyphs/val --patch-size 256 \
  --cover --out patches-val.partial
learn patches mpirun -np 4 mpi4dl train "${model[@]}" "${learning[@]}" --datapath patches-train \
  --image-size 256 --batch-size $((batch * patches / 4)) --batch-norm replicas
[ -f patches/predictions.csv ] ||
  mpirun -np 4 mpi4dl predict --checkpoint patches/checkpoints --datapath patches-val --out patches/predictions.csv

python3 "$here/whole-images.py" whole-images.svg
