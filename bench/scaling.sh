#!/usr/bin/env bash
# scaling.sh [--quick]: what a pixel costs as images grow, and what tiles cost on one machine.
# ResNet-29 v2; takes some minutes. All runs take turns, in rounds, so that a slow minute of the
# machine does not hit one of them alone.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rounds=$(iterations 3 1)
model=(--model resnet --depth 29 --global-pool-head --batch-size 1 --against nothing --warmup 1)
declare -A image_steps=([128]=25 [256]=9 [512]=3 [1024]=2)
grids=(1x1 1x2 2x2 2x3 3x3)

ranks_of() { echo $((${1%x*} * ${1#*x})); }

run_round() {
  local size grid ranks
  for size in "${!image_steps[@]}"; do
    race "image-$size-$1" 4 "${model[@]}" --iterations "${image_steps[$size]}" --stages 2x2 --image-size "$size"
  done
  race_alone "tiles-1-$1" "${model[@]}" --iterations 2 --image-size 768
  for grid in "${grids[@]:1}"; do
    ranks=$(ranks_of "$grid")
    race "tiles-$ranks-$1" "$ranks" "${model[@]}" --iterations 2 --stages "$grid" --image-size 768
  done
}

median() { python3 -c 'import statistics, sys; print(statistics.median(map(float, sys.stdin)))'; }

# median_of NAME PYTHON: of an expression about the figures `r` of a run, over all rounds.
median_of() {
  local round
  for round in $(seq "$rounds"); do figure "$1-$round" "$2"; done | median
}

# median_over NAME OTHER PYTHON: the expression for NAME over that for OTHER in the same round.
median_over() {
  local round
  for round in $(seq "$rounds"); do
    awk "BEGIN { print $(figure "$1-$round" "$3") / $(figure "$2-$round" "$3") }"
  done | median
}

# Images from 128² to 1024² on four tiles: time and memory of each pixel. What does not depend on the
# image is not counted: parameters, their gradients and momenta, 12 bytes each.
images() {
  local size step bytes parameters over
  printf '\n| image, 4 tiles | s/step | µs a pixel | over 1024² | bytes a pixel, largest rank, without parameters | over 1024² |\n|---|---|---|---|---|---|\n'
  parameters=$("$mpi4dl" plan --model resnet --depth 29 --global-pool-head | grep -oP '[0-9]+(?= parameters)' | head -n 1)
  step="sorted(r['seconds'])[len(r['seconds']) // 2]"
  bytes="(max(r['peak_bytes']) - 12 * $parameters)"
  for size in 128 256 512 1024; do
    over="(1024 / $size)^2"
    awk "BEGIN {
      seconds = $(median_of "image-$size" "$step"); bytes = $(median_of "image-$size" "$bytes")
      slower = $(median_over "image-$size" image-1024 "$step") * $over
      larger = $(median_over "image-$size" image-1024 "$bytes") * $over
      printf \"| $size² | %.4f | %.1f | %+.0f %% | %.0f | %+.0f %% |\n\", seconds, 1e6 * seconds / $size^2,
        100 * (slower - 1), bytes / $size^2, 100 * (larger - 1) }"
  done
}

# One to nine tiles of the same image: CPU time of all ranks together. One rank uses all cores, as
# the tiles do together: a core that computes alone is faster. (mpirun would bind it to one.)
tiles() {
  local grid ranks cpu='sum(k["cpu_s"] for k in r["ranks"])'
  printf '\n| tiles of 768² | CPU s of all ranks | over one rank |\n|---|---|---|\n'
  for grid in "${grids[@]}"; do
    ranks=$(ranks_of "$grid")
    awk "BEGIN { printf \"| $grid | %.2f | %+.1f %% |\n\", $(median_of "tiles-$ranks" "$cpu"),
      100 * ($(median_over "tiles-$ranks" tiles-1 "$cpu") - 1) }"
  done
}

for round in $(seq "$rounds"); do run_round "$round"; done
images
tiles
