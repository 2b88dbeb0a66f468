#!/usr/bin/env bash
# train_test.sh: `mpi4dl train` runs the reference's command lines, learns, and explains what is wrong.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

log=$scratch/log.jsonl

# train RANKS ARGUMENT...
train() {
  local ranks=$1
  shift
  run 120 "$ranks" "$MPI4DL" train "$@"
}

trains() {
  train "$@"
  expect_exit 0
  expect_text "images per sec: mean"
}

refuses() {
  local words=$1
  shift
  train "$@"
  expect_exit 2
  expect_one_sentence "$words"
}

# The reference's examples, with smaller images and models.
references_examples() {
  local amoebanet=(--model amoebanet --num-layers 3 --num-filters 16 --num-images 8)
  local resnet=(--model resnet --depth 29 --num-images 8)
  trains 5 "${amoebanet[@]}" --image-size 64 --num-spatial-parts 4 --slice-method vertical \
    --split-size 2 --spatial-size 1 --batch-size 4
  trains 9 "${amoebanet[@]}" --image-size 128 --num-spatial-parts 4 --slice-method vertical \
    --split-size 3 --spatial-size 2 --batch-size 4
  trains 5 "${resnet[@]}" --halo-D2 --num-spatial-parts 4 --image-size 64 --batch-size 2 \
    --slice-method square
  trains 8 "${amoebanet[@]}" --gems --split-size 5 --num-spatial-parts 4 --batch-size 1 \
    --image-size 64 --times 2
  trains 8 "${resnet[@]}" --gems --split-size 5 --num-spatial-parts 4 --image-size 64 \
    --batch-size 1 --times 4
  trains 4 "${resnet[@]}" --split-size 4 --batch-size 4 --parts 2 --image-size 32 -v
  expect_text "activations MiB"
  trains 2 "${resnet[@]}" --gems --split-size 2 --batch-size 2 --image-size 32
}

# The loss of a learnable task falls.
learns() {
  trains 5 --model resnet --resnet-version 1 --depth 8 --image-size 32 --num-spatial-parts 4 \
    --num-classes 4 --batch-size 8 --num-epochs 4 --lr 0.01 --lr-warmup 5 --lr-schedule cosine --json-log "$log"
  [ "$(grep -c . "$log")" = 40 ] || complain "not a line for each step in the log"
  python3 - "$log" <<'END' || complain "the loss did not fall"
import json, sys
loss = [json.loads(line)["loss"] for line in open(sys.argv[1])]
sys.exit(not sum(loss[-10:]) < 0.7 * sum(loss[:10]))
END
}

one_rank_and_files() {
  printf '[train]\nmodel=resnet\nresnet-version=1\ndepth=8\nbatch-size=2\nnum-images=4\n' >"$scratch/run.ini"
  what="one rank with a file of flags"
  "$MPI4DL" --config "$scratch/run.ini" train --dtype bfloat16 --app 3 >"$output" 2>&1 </dev/null
  status=$?
  expect_exit 0
  expect_text "resnet, 78186 parameters, images 32 from synthetic, effective batch 2, bfloat16 on 1 rank"
}

complains() {
  refuses "2 stages of 4 + 1 ranks need a multiple of 5 ranks, not 4" 4 --num-spatial-parts 4
  refuses "--app: 9 not in" 2 --app 9
  refuses "3 images to train on are fewer than the effective batch of 64" 2 --num-images 3
  refuses "a balance of 3,3 must name 2 positive numbers of cells that sum to 38, not 6 (--balance)" \
    2 --split-size 2 --balance 3,3
  refuses "cannot log steps: cannot create" 2 --depth 11 --json-log /nowhere/log
  refuses "--lr: 0 is not a number above 0" 2 --lr 0
  # A learning rate that ruins the weights: the run ends, and says where.
  train 2 --model resnet --resnet-version 1 --depth 8 --split-size 2 --batch-size 2 --lr 1e38
  expect_exit 1
  expect_one_sentence "the first values that are not finite come from cell stem"
}

references_examples
learns
one_rank_and_files
complains
verdict
