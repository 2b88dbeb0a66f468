#!/usr/bin/env bash
# `mpi4dl bench train` reports what it measured, and says what makes no sense.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

short=(--batch-size 2 --warmup 0 --iterations 2)
resnet=(--model resnet --resnet-version 1 --depth 8 --image-size 32)

# measure RANKS ARGUMENT...: a short benchmark, whose figures are then in $result.
measure() {
  local ranks=$1
  shift
  rm -f "$result"
  run 60 "$ranks" "$MPI4DL" bench train "${short[@]}" --json "$result" "$@"
  expect_exit 0
}

# holds PYTHON: an expression about the figures `r`.
holds() {
  python3 -c "import json; r = json.load(open('$result')); assert $1" 2>>"$output" ||
    complain "does not hold: $1"
}

refuses() {
  local words=$1
  shift
  run 30 2 "$MPI4DL" bench train "${short[@]}" "${resnet[@]}" "$@"
  expect_exit 2
  expect_one_sentence "$words"
}

measure 3 "${resnet[@]}" --num-spatial-parts 2 --profile
expect_text "baseline: libtorch alone, float32, NCHW, default allocator, one process, $(env -u OMP_NUM_THREADS nproc) thread"
expect_text "operators that only move data"
holds 'abs(r["ratio"] * r["baseline_images_per_s"] / r["images_per_s"] - 1) < 1e-9'
holds 'abs(r["images_per_s"] * sum(r["seconds"]) / 2 / 2 - 1) < 1e-9'
holds 'len(r["seconds"]) == len(r["baseline_seconds"]) == 2 and len(r["peak_bytes"]) == len(r["ranks"]) == 3'
# Parameters, their gradients and momenta alone take this much.
holds 'all(bytes > 12 * 1000 for bytes in r["peak_bytes"]) and r["baseline_resident_bytes"] > 12 * 78186'
# 25 MFLOP forward for each image of 32 x 32 pixels, and twice as many backward.
holds '0.074 < r["gflops"] / r["images_per_s"] < 0.077'
holds 'r["gflops"] > 0 and abs(r["gemm_fraction"] * r["gemm_peak_gflops"] / r["gflops"] - 1) < 1e-9'
# Each rank knows where its time goes; the last stage waits for the tiles.
holds 'all(min(k["compute_s"], k["communication_s"], k["waiting_s"], k["cpu_s"]) >= 0 for k in r["ranks"])'
holds 'r["ranks"][0]["communication_s"] > 0 and r["ranks"][2]["waiting_s"] > 0'
holds 'abs(sum(o["share"] for o in r["profile"]["operators"]) + r["profile"]["elsewhere_share"] - 1) < 1e-6'
holds 'any(o["name"] == "mpi4dl::communication" for o in r["profile"]["operators"])'

measure 2 "${resnet[@]}" --stages 2x1 --against one-rank
holds 'r["one_rank_images_per_s"] > 0 and "baseline_images_per_s" not in r'
measure 2 "${resnet[@]}" --stages 2x1 --halo-D2 --against design-1 --dtype bfloat16
holds 'r["design_1_images_per_s"] > 0 and r["gemm_type"] == "bfloat16"'
# By its former names.
measure 1 --model amoebanet --num-layers 3 --num-filters 16 --image-size 64 --against plain --plain-dtype float32
holds 'r["ratio"] > 0 and r["ranks"][0]["communication_s"] < 0.02 * r["ranks"][0]["compute_s"]'
# The other side's steps have as many pixels: nine of 32 x 32 for one of 96 x 96, at one price a pixel.
measure 2 --model resnet --resnet-version 1 --depth 8 --global-pool-head --image-size 96 --stages 2x1 \
  --against other-size --other-size 32
holds 'r["other_size_images_per_s"] > 0 and r["images_per_s"] > 0'
expect_text "9 steps a round"
measure 1 "${resnet[@]}" --against nothing
holds '"ratio" not in r and r["images_per_s"] > 0'

refuses "--against design-1 requires --halo-D2" --against design-1
refuses "--baseline-dtype float32 requires --against baseline, not one-rank" \
  --baseline-dtype float32 --against one-rank
for flags in "--against other-size" "--other-size 64"; do
  # shellcheck disable=SC2086 # words of their own
  refuses "--against other-size and --other-size, which says what size, go together" $flags
done
refuses "--other-size 12by is not a size" --against other-size --other-size 12by
refuses "--against: nobody not in" --against nobody
refuses "need a multiple of 5 ranks, not 2" --num-spatial-parts 4
verdict
