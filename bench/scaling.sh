#!/usr/bin/env bash
# scaling.sh [--quick]: what a pixel costs as images grow, and what tiles cost on one machine.
# ResNet-29 v2; takes some ten minutes. Images of different sizes alternate within a run, tiles in
# rounds, so that a slow minute of the machine does not hit one of them alone.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rounds=$(iterations 3 1)
model=(--model resnet --depth 29 --global-pool-head --batch-size 1)
sizes=(128 256 512)
grids=(1x1 1x2 2x2 2x3 3x3)

ranks_of() { echo $((${1%x*} * ${1#*x})); }

# Time: so many steps of a size as have the pixels of one step of 1024², then that step, alternating.
# Memory: a step of each size.
run_images() {
  local size
  for size in "${sizes[@]}"; do
    measure "image-1024-$size" 4 "${model[@]}" --stages 2x2 --image-size 1024 --against other-size \
      --other-size "$size" --warmup 0 --iterations "$(iterations 9 2)"
    measure "image-$size" 4 "${model[@]}" --stages 2x2 --image-size "$size" --against nothing --iterations 1
  done
}

run_round() {
  local grid ranks often=(--image-size 768 --against nothing --warmup 1 --iterations 2)
  measure_alone "tiles-1-$1" "${model[@]}" "${often[@]}"
  for grid in "${grids[@]:1}"; do
    ranks=$(ranks_of "$grid")
    measure "tiles-$ranks-$1" "$ranks" "${model[@]}" "${often[@]}" --stages "$grid"
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
  local size bytes parameters theirs="r['other_size_seconds']" ours="r['seconds']"
  printf '\n| image, 4 tiles | µs a pixel | over 1024² in the same round | bytes a pixel, largest rank, without parameters | over 1024² |\n|---|---|---|---|---|\n'
  parameters=$("$mpi4dl" plan --model resnet --depth 29 --global-pool-head | grep -oP '[0-9]+(?= parameters)' | head -n 1)
  bytes="(max(r['peak_bytes']) - 12 * $parameters)"
  for size in "${sizes[@]}"; do
    awk "BEGIN {
      slower = $(figure "image-1024-$size" "median([b / a for a, b in zip($ours, $theirs)])")
      bytes = $(figure "image-$size" "$bytes") / $size^2; all = $(figure "image-1024-$size" "$bytes") / 1024^2
      printf \"| $size² | %.2f | %+.1f %% | %.0f | %+.1f %% |\n\",
        1e6 * $(figure "image-1024-$size" "median($theirs)") / 1024^2, 100 * (slower - 1), bytes, 100 * (bytes / all - 1) }"
  done
  awk "BEGIN { printf \"| 1024² | %.2f | | %.0f | |\n\",
    1e6 * $(figure image-1024-128 "median($ours)") / 1024^2, $(figure image-1024-128 "$bytes") / 1024^2 }"
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

run_images
for round in $(seq "$rounds"); do run_round "$round"; done
images
tiles
