#!/usr/bin/env bash
# scaling.sh [--quick]: what a pixel costs as images grow, and what tiles cost on one machine.
# ResNet-29 v2; takes some minutes.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

model=(--model resnet --depth 29 --global-pool-head --batch-size 1 --against nothing
       --warmup 1 --iterations "$(iterations 7 3)")

# Images from 128² to 1024² on four tiles: time and memory of each pixel. What does not depend on the
# image is not counted: parameters, their gradients and momenta, 12 bytes each.
images() {
  local size parameters
  printf '\n| image, 4 tiles | s/step | µs a pixel | bytes a pixel, largest rank, without parameters |\n|---|---|---|---|\n'
  parameters=$("$mpi4dl" plan --model resnet --depth 29 --global-pool-head | grep -oP '[0-9]+(?= parameters)' | head -n 1)
  for size in 128 256 512 1024; do
    race "image-$size" 4 "${model[@]}" --stages 2x2 --image-size $size >&2
    figure "image-$size" "'| $size² | %.4f | %.3f | %.0f |' % (
      sorted(r['seconds'])[len(r['seconds']) // 2],
      1e6 * sorted(r['seconds'])[len(r['seconds']) // 2] / $size**2, (max(r['peak_bytes']) - 12 * $parameters) / $size**2)"
  done
}

# One to nine tiles of the same image: CPU time of all ranks together. One rank uses all cores, as
# the tiles do together: a core that computes alone is faster.
tiles() {
  local grid ranks cpu one=""
  printf '\n| tiles of 768² | CPU s of all ranks | over one rank |\n|---|---|---|\n'
  for grid in 1x1 1x2 2x2 2x3 3x3; do
    ranks=$((${grid%x*} * ${grid#*x}))
    race "tiles-$ranks" "$ranks" "${model[@]}" --stages $grid --image-size 768 >&2
    cpu=$(figure "tiles-$ranks" 'round(sum(k["cpu_s"] for k in r["ranks"]), 3)')
    one=${one:-$cpu}
    printf '| %s | %s | %s |\n' $grid "$cpu" "$(awk "BEGIN { printf \"%+.1f %%\", 100 * ($cpu / $one - 1) }")"
  done
}

images
tiles
