#!/usr/bin/env bash
# pipelines.sh [--quick]: layer parallelism and GEMS, one thread a rank, against what MPI4DL v0.6
# did with gloo on another machine with two cores. How fast this one is, compared with that one,
# the libtorch baseline says, which was measured there too; see bench/README.md.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

often=(--warmup 2 --iterations "$(iterations 15 5)")
resnet=(--model resnet --depth 110)
amoebanet=(--model amoebanet --num-layers 6 --num-filters 64)

# speed NAME THERE ARGUMENT...: images/s of the libtorch baseline, 256², batch 2, both cores, over those
# there.
speed() {
  local name=baseline-$1 there=$2
  shift 2
  measure_alone "$name" "$@" --image-size 256 --batch-size 2 --warmup 1 --iterations "$(iterations 5 2)" >&2
  figure "$name" "round(r['baseline_images_per_s'] / $there, 3)"
}

# compare NAME THEIRS SPEED RANKS ARGUMENT...: images/s, at least 1.3 times theirs on such a machine.
compare() {
  local name=$1 theirs=$2 speed=$3 ranks=$4 ours bound
  shift 4
  OMP_NUM_THREADS=1 measure "$name" "$ranks" "$@" --against nothing "${often[@]}"
  ours=$(figure "$name" 'round(r["images_per_s"], 2)')
  bound=$(awk "BEGIN { printf \"%.2f\", 1.3 * $theirs * $speed }")
  row "$ranks ranks: $*" "$ours images/s" "at least 1.3 × $theirs × $speed = $bound" \
    "$(within "$ours" '>=' "$bound")"
}

of_resnet=$(speed resnet 0.42 "${resnet[@]}")
of_amoebanet=$(speed amoebanet 12.9 "${amoebanet[@]}")
resnet+=(--image-size 64)
amoebanet+=(--image-size 128)
compare lp-resnet-2 4.94 "$of_resnet" 2 "${resnet[@]}" --split-size 2 --batch-size 4 --parts 4
compare lp-resnet-4 4.92 "$of_resnet" 4 "${resnet[@]}" --split-size 4 --batch-size 4 --parts 2
compare lp-amoebanet-2 25.7 "$of_amoebanet" 2 "${amoebanet[@]}" --split-size 2 --batch-size 4 --parts 4
compare lp-amoebanet-4 26.4 "$of_amoebanet" 4 "${amoebanet[@]}" --split-size 4 --batch-size 4 --parts 2
compare gems-resnet-1 3.4 "$of_resnet" 4 "${resnet[@]}" --gems --split-size 4 --batch-size 2 --times 2
compare gems-resnet-2 3.9 "$of_resnet" 4 "${resnet[@]}" --gems --split-size 4 --batch-size 2 --times 2 --parts 2
print_table "layout"
