#!/usr/bin/env bash
# scaling.sh [--quick]: what a pixel costs as images grow, and what tiles cost on one machine.
# ResNet-29 v2; takes some minutes.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

model=(--model resnet --depth 29 --global-pool-head --batch-size 1 --against nothing
       --warmup 1 --iterations "$(iterations 7 3)")

# Images from 128² to 1024² on four tiles: seconds and bytes for each million pixels.
images() {
  local size
  printf '\n| image, 4 tiles | s/step | µs a pixel | bytes a pixel, largest rank |\n|---|---|---|---|\n'
  for size in 128 256 512 1024; do
    race "image-$size" 4 "${model[@]}" --stages 2x2 --image-size $size >&2
    figure "image-$size" "'| $size² | %.4f | %.3f | %.0f |' % (
      sorted(r['seconds'])[len(r['seconds']) // 2],
      1e6 * sorted(r['seconds'])[len(r['seconds']) // 2] / $size**2, max(r['peak_bytes']) / $size**2)"
  done
}

# One to nine tiles of the same image: CPU time of all ranks together, one thread each.
tiles() {
  local grid ranks cpu one=""
  export OMP_NUM_THREADS=1
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
