#!/usr/bin/env bash
# verify_test.sh [--full [SECONDS]]: `mpi4dl verify` finds every layout equal to one rank, and says
# so when it is not. With --full, all combinations of models, tiles, sizes, designs and batches in
# random order, as many as there is time for; they take many hours.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

v1=(--model resnet --resnet-version 1 --depth)
v2=(--model resnet --resnet-version 2 --depth)
amoebanet=(--model amoebanet --num-layers 6 --num-filters 64)
largest_error=0

# verify TILES ARGUMENT...: one stage of so many tiles, one rank each; leaves the result in $result.
verify() {
  local tiles=$1
  shift
  rm -f "$result"
  run 600 "$tiles" "$MPI4DL" verify --json "$result" --split-size 1 --num-spatial-parts "$tiles" "$@"
}

# The value of a key of the result.
value() { sed -n "s/^ *\"$1\": \(.*[^,]\),\{0,1\}$/\1/p" "$result"; }

# The last run found no difference, and the messages that the plan had counted.
expect_equal() {
  local key
  expect_exit 0
  [ "$status" = 0 ] || return
  [ "$(value equal)" = true ] || complain "not equal"
  awk "BEGIN { exit (($(value loss) - $(value loss_one_rank)) ^ 2 > 1e-18) }" ||
    complain "the losses differ"
  for key in messages bytes; do
    [ "$(value $key)" = "$(value ${key}_planned)" ] || complain "planned and sent $key differ"
  done
  largest_error=$(printf '%s\n' "$largest_error" "$(value max_relative_error)" | sort -g | tail -1)
}

equal() {
  verify "$@"
  expect_equal
}

some_combinations() {
  equal 2 "${v1[@]}" 8 --image-size 64 --slice-method vertical
  equal 3 "${v1[@]}" 8 --image-size 100 --slice-method horizontal --batch-size 3
  equal 4 "${v1[@]}" 8 --image-size 127 --slice-method square
  equal 6 "${v1[@]}" 8 --image-size 96x64 --slice-method square --halo-D2
  equal 9 "${v1[@]}" 8 --image-size 96 --slice-method square --halo-D2 --fused-layers 2
  equal 6 "${v1[@]}" 8 --image-size 127 --slice-method vertical --halo-D2 --fused-layers 4
  equal 9 "${v1[@]}" 8 --image-size 64 --slice-method horizontal --batch-size 3

  equal 2 "${v2[@]}" 11 --image-size 127 --slice-method horizontal --halo-D2 --fused-layers 4
  equal 3 "${v2[@]}" 11 --image-size 96 --slice-method vertical --halo-D2 --fused-layers 2
  equal 4 "${v2[@]}" 11 --image-size 100 --slice-method square --batch-size 3
  equal 6 "${v2[@]}" 11 --image-size 96x64 --slice-method horizontal
  equal 9 "${v2[@]}" 11 --image-size 127 --slice-method square --halo-D2
  equal 4 "${v2[@]}" 11 --image-size 100 --global-pool-head --halo-D2 --fused-layers 2
  equal 4 "${v2[@]}" 11 --image-size 64 --steps 3
  equal 4 "${v2[@]}" 110 --image-size 64 --slice-method square

  # One image of 64 leaves 2x2 pixels, over which AmoebaNet's last average undoes its last batch
  # norm: almost all gradients are rounding errors of zero.
  equal 4 "${amoebanet[@]}" --image-size 64
  equal 2 "${amoebanet[@]}" --image-size 96 --slice-method vertical
  equal 2 "${amoebanet[@]}" --image-size 64 --slice-method horizontal --batch-size 3 --halo-D2
  equal 3 "${amoebanet[@]}" --image-size 96 --slice-method horizontal --halo-D2 --fused-layers 2
  equal 4 "${amoebanet[@]}" --image-size 100 --slice-method square --halo-D2 --fused-layers 4
  equal 4 "${amoebanet[@]}" --image-size 127 --slice-method vertical
  equal 4 "${amoebanet[@]}" --image-size 96x64 --slice-method square --batch-size 3
  equal 6 "${amoebanet[@]}" --image-size 127 --slice-method square --halo-D2
  equal 9 "${amoebanet[@]}" --image-size 96 --slice-method square --batch-size 3
  # Maps of 2x2 pixels, which the first tile has.
  equal 3 "${amoebanet[@]}" --image-size 64 --slice-method vertical --batch-size 2
  equal 9 "${v1[@]}" 8 --slice-method horizontal --halo-D2
}

reports() {
  local key
  equal 4 "${v1[@]}" 8
  for key in loss loss_one_rank max_relative_error worst replicas_agree tolerance messages bytes; do
    expect_text "\"$key\": " "$result"
  done
  for key in "resnet, 78186 parameters" "stages 2x2" "max relative error" "equal to one rank"; do
    expect_text "$key"
  done
  equal 4 "${v1[@]}" 8 --batch-norm replicas
  verify 4 "${v1[@]}" 8 --dtype float32 --tolerance 0.1
  expect_exit 0

  # One rank needs no launcher, and is equal to itself.
  what="one rank without mpirun"
  rm -f "$result"
  "$MPI4DL" verify "${v1[@]}" 8 --batch-norm local --json "$result" >"$output" 2>&1 </dev/null
  status=$?
  expect_equal
  [ "$(value max_relative_error)" = 0.0 ] || complain "a difference to itself"
}

# With the kernels of each instruction set, what is computed does not depend on where tiles end.
each_instruction_set() {
  local set
  for set in sse2 avx2 avx512 amx; do
    export MPI4DL_MAX_ISA=$set
    "$MPI4DL" --version | grep -q "instruction set *$set" || continue  # the processor has none
    equal 4 "${v2[@]}" 11 --image-size 64 --slice-method square
  done
  unset MPI4DL_MAX_ISA
}

# By libtorch's operators, against our kernels on one rank.
composed_backend() {
  equal 1 "${v1[@]}" 8 --backend composed
  equal 4 "${v2[@]}" 11 --image-size 64 --slice-method square --backend composed
  equal 3 "${amoebanet[@]}" --image-size 96 --slice-method horizontal --halo-D2 --backend composed
  what="stages with the composed backend"
  rm -f "$result"
  run 600 5 "$MPI4DL" verify --json "$result" "${v1[@]}" 8 --split-size 2 --num-spatial-parts 4 --batch-size 2 \
    --parts 2 --recompute --backend composed
  expect_exit 0
  [ "$(value equal)" = true ] || complain "not equal"
}

notices_differences() {
  verify 4 "${v2[@]}" 11 --image-size 64 --batch-norm local
  expect_exit 1
  expect_text "NOT EQUAL"
  expect_text '"equal": false' "$result"
  verify 2 "${v1[@]}" 8 --dtype float32
  expect_exit 1
}

# refuses WORDS RANKS ARGUMENT...
refuses() {
  local words=$1 ranks=$2
  shift 2
  run 60 "$ranks" "$MPI4DL" verify "$@"
  expect_exit 2
  expect_one_sentence "$words"
}

complains() {
  refuses "1 stage of 3 ranks needs a multiple of 3 ranks, not 4; start with mpirun -np 3" \
    4 --split-size 1 --num-spatial-parts 3
  refuses "2 stages of 4 + 1 ranks need a multiple of 5 ranks, not 4" 4 --num-spatial-parts 4
  refuses "needs a depth of 9n+2, not 100; the nearest: 92 and 101" 2 --depth 100
  refuses "multiple of 3 layers, not 7" 2 --model amoebanet --num-layers 7
  refuses "unknown model 'vgg'" 2 --model vgg
  refuses "an image of 4x4 is too small for 9 rows and 1 columns of tiles" \
    9 "${v2[@]}" 11 --global-pool-head --image-size 4 --stages 9x1
  refuses "--fused-layers 2 requires --halo-D2" 4 --fused-layers 2
  refuses "a batch of 1 images has no 2 micro-batches" 2 --split-size 2 --parts 2
  refuses "--times 2 is about two directions, but this run has one" 2 --split-size 2 --times 2
  refuses "a model of 5 cells cannot be split into 6 stages" 6 "${v1[@]}" 8 --split-size 6
  refuses "1 images cannot be shared by 2 batch parts" 3 --stages 1,b:2
  refuses "--dtype" 2 --dtype int8
}

# One line for each combination: ranks, then arguments.
all_combinations() {
  local model tiles size design batch
  for model in "$@"; do
    for tiles in {2,3,4,6,9}" --slice-method "{vertical,horizontal} {4,6,9}" --slice-method square"; do
      for size in 64 96 100 127 96x64; do
        for design in "" "--halo-D2" "--halo-D2 --fused-layers 2" "--halo-D2 --fused-layers 4"; do
          for batch in 1 3; do
            echo "$tiles $model --image-size $size $design --batch-size $batch"
          done
        done
      done
    done
  done | shuf --random-source=<(yes)
}

# run_all SECONDS: small models first.
run_all() {
  local equal=0 arguments
  while [ "$SECONDS" -lt "$1" ] && read -r -a arguments; do
    verify "${arguments[@]}"
    expect_equal
    [ "$status" = 0 ] && equal=$((equal + 1))
  done < <(
    all_combinations "${v1[*]} 8" "${v2[*]} 11" "${amoebanet[*]}"
    all_combinations "${v1[*]} 110" "${v2[*]} 110"
  )
  echo "$equal combinations are equal to one rank"
}

if [ "${1:-}" = --full ]; then
  run_all "${2:-1000000}"
else
  some_combinations
  reports
  each_instruction_set
  composed_backend
  notices_differences
  complains
fi
echo "largest relative error: $largest_error"
verdict
