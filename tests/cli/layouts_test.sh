#!/usr/bin/env bash
# layouts_test.sh [--full] [FLAG...]: `mpi4dl verify` finds layouts of every kind equal to one rank after three
# optimizer steps, parameters included. With --full all of them, for all models, with and without
# recompute: about an hour. Flags such as --device are given to every run.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

largest_error=0
count=0
model=() # arguments
more=()  # for every layout
full=
if [ "${1:-}" = --full ]; then full=1 && shift; fi
always=("$@")

value() { sed -n "s/^ *\"$1\": \(.*[^,]\),\{0,1\}$/\1/p" "$result"; }

# equal RANKS ARGUMENT...
equal() {
  local ranks=$1
  shift
  rm -f "$result"
  run 300 "$ranks" "$MPI4DL" verify --json "$result" --batch-size 4 --steps 3 \
    "${always[@]}" "${model[@]}" "${more[@]}" "$@"
  expect_exit 0
  [ "$status" = 0 ] || return
  [ "$(value equal)" = true ] || complain "not equal"
  [ "$(value messages)" = "$(value messages_planned)" ] || [ -z "$(value messages_planned)" ] ||
    complain "planned and sent messages differ"
  largest_error=$(printf '%s\n' "$largest_error" "$(value max_relative_error)" | sort -g | tail -1)
  count=$((count + 1))
}

layer_and_pipeline() {
  local ranks parts schedule
  for ranks in 2 3 4; do
    equal "$ranks" --split-size "$ranks"
    for parts in 2 4; do
      for schedule in gpipe 1f1b; do
        equal "$ranks" --split-size "$ranks" --parts "$parts" --schedule "$schedule"
      done
    done
  done
  equal 2 --split-size 2 --parts 3 # micro-batches of 1, 1 and 2 images
}

spatial() {
  local slice design
  for design in "" "--halo-D2" "--halo-D2 --fused-layers 2"; do
    for slice in square vertical horizontal; do
      # shellcheck disable=SC2086 # several flags
      equal 5 --split-size 2 --num-spatial-parts 4 --slice-method "$slice" $design
    done
    for layout in "9 4" "9 4,4" "7 4,2"; do
      # shellcheck disable=SC2086 # several flags
      equal "${layout% *}" --split-size 3 --spatial-size 2 --num-spatial-parts "${layout#* }" $design
    done
  done
  equal 5 --num-spatial-parts 4 --parts 2
}

data_parallel() {
  equal 6 --split-size 2 --num-spatial-parts 4 --local-DP 2
  equal 4 --split-size 2 --local-DP 2 --parts 2
  equal 4 --split-size 2
  equal 4 --split-size 2 --parts 2 --batch-norm replicas
  equal 6 --split-size 2 --num-spatial-parts 2
  equal 3 --optimizer adamw --weight-decay 0.01 --clip-norm 1
}

gems() {
  local ranks times
  for ranks in 2 3 4 5; do
    for times in 1 2; do equal "$ranks" --gems --split-size "$ranks" --times "$times"; done
  done
  equal 5 --gems --num-spatial-parts 4
  equal 6 --gems --split-size 3 --num-spatial-parts 4 --parts 2
  equal 6 --gems --split-size 3 --num-spatial-parts 4 --halo-D2 --times 3
  equal 4 --gems --split-size 2 --times 2 # two replicas
}

all_layouts() {
  layer_and_pipeline
  spatial
  data_parallel
  gems
}

v1=(--model resnet --resnet-version 1 --depth 20 --image-size 32)
v2=(--model resnet --depth 29 --image-size 32)
amoebanet=(--model amoebanet --num-layers 6 --num-filters 64 --image-size 128)

if [ -n "$full" ]; then
  for again in "" --recompute; do
    more=()
    [ -z "$again" ] || more=("$again")
    model=("${v1[@]}") && all_layouts
    model=("${v2[@]}") && all_layouts
    model=("${amoebanet[@]}") && all_layouts
  done
else
  model=("${v1[@]}")
  equal 3 --split-size 3
  equal 4 --split-size 4 --parts 4 --schedule gpipe
  equal 2 --split-size 2 --parts 3 # micro-batches of 1, 1 and 2 images
  equal 5 --split-size 2 --num-spatial-parts 4 --slice-method vertical
  equal 9 --split-size 3 --spatial-size 2 --num-spatial-parts 4,4 --halo-D2 --fused-layers 2
  equal 7 --split-size 3 --spatial-size 2 --num-spatial-parts 4,2
  equal 6 --split-size 2 --num-spatial-parts 4 --local-DP 2
  equal 4 --split-size 2 --parts 2 --batch-norm replicas
  equal 6 --split-size 2 --num-spatial-parts 2
  equal 3 --optimizer adamw --weight-decay 0.01 --clip-norm 1
  equal 3 --gems --split-size 3 --times 1
  equal 5 --gems --num-spatial-parts 4
  model=("${v2[@]}")
  equal 5 --num-spatial-parts 4 --slice-method horizontal --recompute
  equal 4 --gems --split-size 4 --recompute
  model=("${amoebanet[@]}")
  equal 5 --num-spatial-parts 4 --halo-D2 --recompute
  equal 4 --split-size 4 --parts 4
fi
echo "$count layouts equal one rank, largest relative error $largest_error"
verdict
