#!/usr/bin/env bash
# pipelines.sh [--quick]: layer parallelism and GEMS, one thread a rank, against what MPI4DL v0.6
# did with gloo on a machine with two such cores. Only figures of the same machine can be compared;
# see bench/README.md.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

export OMP_NUM_THREADS=1
often=(--against nothing --warmup 2 --iterations "$(iterations 15 5)")
resnet=(--model resnet --depth 110 --image-size 64)
amoebanet=(--model amoebanet --num-layers 6 --num-filters 64 --image-size 128)

# compare NAME THEIRS RANKS ARGUMENT...: images/s, at least 1.3 times theirs.
compare() {
  local name=$1 theirs=$2 ranks=$3 ours bound
  shift 3
  race "$name" "$ranks" "$@" "${often[@]}"
  ours=$(figure "$name" 'round(r["images_per_s"], 2)')
  bound=$(awk "BEGIN { print 1.3 * $theirs }")
  row "$name, $ranks ranks: $*" "$ours images/s" "at least $bound" "$(within "$ours" '>=' "$bound")"
}

compare lp-resnet-2 4.94 2 "${resnet[@]}" --split-size 2 --batch-size 4 --parts 4
compare lp-resnet-4 4.92 4 "${resnet[@]}" --split-size 4 --batch-size 4 --parts 2
compare lp-amoebanet-2 25.7 2 "${amoebanet[@]}" --split-size 2 --batch-size 4 --parts 4
compare lp-amoebanet-4 26.4 4 "${amoebanet[@]}" --split-size 4 --batch-size 4 --parts 2
compare gems-resnet-1 3.4 4 "${resnet[@]}" --gems --split-size 4 --batch-size 2 --times 2
compare gems-resnet-2 3.9 4 "${resnet[@]}" --gems --split-size 4 --batch-size 2 --times 2 --parts 2
print_table "layout"
