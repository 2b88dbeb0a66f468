#!/usr/bin/env bash
# evaluate_test.sh: `train --run-dir`, `evaluate` and `predict` on real ranks: every layout gives the
# same metrics, files agree with each other, and bad use is explained.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

check=$(dirname "$0")/../support/check_run.py
model=(--model resnet --resnet-version 1 --depth 8 --num-classes 4 --dtype float64)
data=(--num-images 60 --val-fraction 0.35) # 21 images, or about so many, are held out
learning=(--num-epochs 2 --lr 0.01 --eval-every 3steps)
weights=$scratch/checkpoints
results=()

# mpi4dl RANKS ARGUMENT...
mpi4dl() {
  local ranks=$1
  shift
  run 120 "$ranks" "$MPI4DL" "$@"
}

expect_check() {
  python3 "$check" "$@" >>"$output" 2>&1 || complain "check_run.py $* fails"
}

# trains NAME RANKS ARGUMENT...: with a run directory of this name.
trains() {
  local name=$1 ranks=$2 steps
  shift 2
  mpi4dl "$ranks" train "${model[@]}" "${data[@]}" "${learning[@]}" --run-dir "$scratch/$name" "$@"
  expect_exit 0
  expect_text "evaluation  loss"
  steps=$(grep -c '"kind":"step"' "$scratch/$name/metrics.jsonl")
  expect_check run "$scratch/$name" "$steps" "$(((steps + 2) / 3))"
  results+=("$scratch/$name/summary.json")
}

# evaluates NAME RANKS ARGUMENT...: the checkpoint says which model.
evaluates() {
  local name=$1 ranks=$2
  shift 2
  mpi4dl "$ranks" evaluate --dtype float64 "${data[@]}" --checkpoint "$weights" --json "$scratch/$name.json" "$@"
  expect_exit 0
  expect_text "AUC"
  results+=("$scratch/$name.json")
}

# predicts NAME RANKS ARGUMENT...
predicts() {
  local name=$1 ranks=$2
  shift 2
  mpi4dl "$ranks" predict --dtype float64 "${data[@]}" --checkpoint "$weights" --out "$scratch/$name.csv" "$@"
  expect_exit 0
  expect_check predictions "$scratch/$name.csv" "$scratch/one.json"
}

# refuses WORDS RANKS ARGUMENT...
refuses() {
  local words=$1 ranks=$2
  shift 2
  mpi4dl "$ranks" "$@"
  expect_exit 2
  expect_one_sentence "$words"
}

every_layout_says_the_same() {
  trains layers_run 2 --split-size 2 --batch-size 8 --parts 2 --checkpoint-dir "$weights"
  trains gems_run 2 --gems --split-size 2 --batch-size 4 --times 2
  evaluates one 1
  evaluates tiles 5 --num-spatial-parts 4 --batch-size 4
  evaluates layers 4 --split-size 4 --batch-size 2
  evaluates replicas 4 --split-size 2 --batch-size 5
  evaluates shared 6 --num-spatial-parts 4 --local-DP 2 --batch-size 3 --halo-D2
  what="results of all layouts"
  expect_check same "${results[@]}"
  grep "results agree" "$output"
  predicts one 1
  predicts many 4 --split-size 2 --batch-size 3
  predicts tiles 5 --num-spatial-parts 4
}

# A run that goes on adds to its folder; what it had written of steps that come again is gone.
goes_on() {
  local again=(train "${model[@]}" "${data[@]}" --batch-size 8 --lr 0.01 --eval-every 3steps
    --run-dir "$scratch/again" --checkpoint-dir "$scratch/kept")
  mpi4dl 1 "${again[@]}" --num-epochs 1
  expect_exit 0
  printf '{"kind":"step","total_step":99}\n{"kind":"ste' >>"$scratch/again/metrics.jsonl"
  mpi4dl 1 "${again[@]}" --num-epochs 2 --resume auto
  expect_exit 0
  expect_check run "$scratch/again" 8 4 # after steps 3, 4 (the end), 6 and 8
}

complains() {
  local ask=(evaluate "${model[@]}" --weights "$weights")
  refuses "--checkpoint is required" 2 evaluate "${model[@]}"
  refuses "there are no weights '/nowhere'" 2 evaluate "${model[@]}" --weights /nowhere
  refuses "--depth 14 contradicts $weights/step-" 2 evaluate --depth 14 --checkpoint "$weights"
  mpi4dl 1 export --checkpoint "$weights" --to safetensors --out "$scratch/w.safetensors"
  refuses "weights of another model" \
    2 evaluate --model resnet --resnet-version 1 --depth 14 --checkpoint "$scratch/w.safetensors"
  refuses "--part validation: no images are held out" 1 "${ask[@]}" --part validation
  refuses "need a multiple of 5 ranks, not 4" 4 "${ask[@]}" --num-spatial-parts 4
  refuses "--gems" 2 "${ask[@]}" --gems
  refuses "--out is required" 1 predict "${model[@]}" --weights "$weights"
  refuses "--out: cannot create '/nowhere/p.csv.partial': No such file or directory" \
    2 predict "${model[@]}" --weights "$weights" --out /nowhere/p.csv
  refuses "--out $scratch is a folder" 2 predict "${model[@]}" --weights "$weights" --out "$scratch"
  refuses "the run directory $scratch/layers_run holds another run already; use a new folder, or resume that run (--run-dir, --resume)" \
    2 train "${model[@]}" --batch-size 2 --run-dir "$scratch/layers_run"
  refuses "cannot make --run-dir /dev/null/run: Not a directory" \
    2 train "${model[@]}" --batch-size 2 --run-dir /dev/null/run
  refuses "--eval-every 2days is not how often" 1 train "${model[@]}" "${data[@]}" --batch-size 2 --eval-every 2days
  refuses "--eval-every 2 needs images that are held out" 1 train "${model[@]}" --batch-size 2 --eval-every 2
}

every_layout_says_the_same
goes_on
complains
verdict
