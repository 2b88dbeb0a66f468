#!/usr/bin/env bash
# targets.sh [--quick]: measures what this system promises, each against something else in the same
# run, and prints a table. Takes about 20 minutes on two quiet cores; --quick takes fewer repeats.
# Profiles of operators are in build/bench-resnet-5.log and build/bench-amoebanet-5.log. The last
# row needs root.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

resnet=(--model resnet --depth 110)
amoebanet=(--model amoebanet --num-layers 6 --num-filters 64)
tiles=(--split-size 2 --num-spatial-parts 4)
often=(--warmup 2 --iterations "$(iterations 9 3)")
seldom=(--warmup 1 --iterations "$(iterations 5 2)")

# ratio_row WHAT NAME BOUND: the ratio of that run.
ratio_row() {
  local ratio
  ratio=$(figure "$2" 'round(r["ratio"], 3)')
  row "$1" "$ratio" "at least $3" "$(within "$ratio" '>=' "$3")"
}

# moving_row WHAT NAME: the share of the worst operator that only moves data, in that run's profile.
moving_row() {
  local worst
  worst=$(figure "$2" 'round(100 * max([o["share"] for o in r["profile"]["operators"] if o["moves_data"]], default=0), 2)')
  row "$1: the worst operator that only moves data" "$worst %" "at most 3 %" "$(within "$worst" '<=' 3)"
}

against_baseline() {
  local common=(--image-size 256 --batch-size 2 "${seldom[@]}")
  measure resnet-5 5 "${resnet[@]}" "${tiles[@]}" "${common[@]}" --profile
  ratio_row "ResNet-110 256², 4 tiles + 1, against the libtorch baseline" resnet-5 1.10
  measure resnet-5-bf16 5 "${resnet[@]}" "${tiles[@]}" "${common[@]}" --dtype bfloat16
  ratio_row "the same in bfloat16, against float32" resnet-5-bf16 1.9
  measure amoebanet-5 5 "${amoebanet[@]}" "${tiles[@]}" --image-size 256 --batch-size 2 "${often[@]}" \
    --profile
  ratio_row "AmoebaNet (L6, F64) 256², 4 tiles + 1, against the libtorch baseline" amoebanet-5 1.05
  moving_row "ResNet-110 256², 4 tiles + 1" resnet-5
  moving_row "AmoebaNet (L6, F64) 256², 4 tiles + 1" amoebanet-5
  measure_alone resnet-1 "${resnet[@]}" "${common[@]}"
  ratio_row "ResNet-110 256², one rank, all threads, against the libtorch baseline" resnet-1 1.15
  measure_alone amoebanet-1 "${amoebanet[@]}" --image-size 256 --batch-size 2 "${often[@]}"
  ratio_row "AmoebaNet (L6, F64) 256², one rank, all threads, against the libtorch baseline" amoebanet-1 1.35
}

two_ranks() {
  OMP_NUM_THREADS=1 measure two-tiles 2 "${resnet[@]}" --stages 2x1 --image-size 512 --batch-size 1 \
    --against one-rank "${seldom[@]}"
  ratio_row "ResNet-110 512², 2 tiles on 2 ranks against 1 rank, 1 thread each" two-tiles 1.9
}

# halo NAME WORDS ARGUMENT...: the exchange against bare MPI.
halo() {
  local name=halo-$1 words=$2 ratio
  shift 2
  step "$name: mpirun -np 4 mpi4dl bench halo $*" "bench-$name" \
    mpirun -np 4 "$mpi4dl" bench halo --json "$figures/$name.json" --validate "$@"
  ratio=$(figure "$name" 'round(r["ratio_to_bare_mpi"], 3)')
  row "halo exchange, $words, against bare MPI" "$ratio" "at most 1.25" "$(within "$ratio" '<=' 1.25)"
}

halos() {
  local repeats=(--image-size 1024 --warmup 20 --iterations "$(iterations 4000 400)") ms
  halo 3-1 "1024², 3 channels, halo 1" --in-channels 3 --halo-len 1 "${repeats[@]}"
  halo 3-3 "1024², 3 channels, halo 3" --in-channels 3 --halo-len 3 "${repeats[@]}"
  halo 64-1 "1024², 64 channels, halo 1" --in-channels 64 --halo-len 1 "${repeats[@]}"
  halo 64-3 "1024², 64 channels, halo 3" --in-channels 64 --halo-len 3 "${repeats[@]}"
  ms=$(figure halo-3-3 'round(r["median_ms"], 4)')
  row "halo exchange, 1024², 3 channels, halo 3, against MPI4DL's 2.56 ms" "$ms ms" \
    "at most 0.128 ms" "$(within "$ms" '<=' 0.128)"
}

# memory NAME WORDS BOUND_MIB ARGUMENT...: of the largest tile rank, which holds 3294 MiB in MPI4DL.
memory() {
  local name=memory-$1 words=$2 bound=$3 mib
  shift 3
  measure "$name" 5 "${resnet[@]}" "${tiles[@]}" --image-size 512 --batch-size 2 --against nothing \
    --warmup 0 --iterations 1 "$@"
  mib=$(figure "$name" 'round(max(k["resident_bytes"] for k in r["ranks"][:4]) / 2**20)')
  row "memory of a tile rank, ResNet-110 512², batch 2$words" "$mib MiB" "at most $bound MiB" \
    "$(within "$mib" '<=' "$bound")"
}

designs() {
  measure d2-free 5 "${resnet[@]}" "${tiles[@]}" --image-size 256 --batch-size 2 --halo-D2 \
    --against design-1 "${seldom[@]}"
  ratio_row "--halo-D2 against design 1, messages on one node, ResNet-110 256²" d2-free 0.95
  local d2=(--model resnet --depth 29 --stages 2x2 --image-size 128 --batch-size 1 --halo-D2
            --against design-1 --warmup 2 --iterations "$(iterations 51 3)")
  measure d2-free-small 4 "${d2[@]}"
  ratio_row "--halo-D2 against design 1, messages on one node, ResNet-29 128²" d2-free-small 0.95
  if [ "$(id -u)" = 0 ]; then
    step "d2-1ms: emulated-network.sh --delay 1ms 4 mpi4dl bench train ${d2[*]}" bench-d2-1ms \
      bench/emulated-network.sh --delay 1ms --rate 10gbit 4 \
      "$mpi4dl" bench train --json "$figures/d2-1ms.json" "${d2[@]}"
    ratio_row "--halo-D2 against design 1, a message takes 1 ms, ResNet-29 128²" d2-1ms 1.00
  fi
}

against_baseline
two_ranks
halos
memory kept "" 1647
memory recompute ", --recompute" 659 --recompute
designs
print_table "figure"
