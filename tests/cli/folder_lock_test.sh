#!/usr/bin/env bash
# folder_lock_test.sh [TIMES]: of two runs in one folder exactly one goes on, and the other says who has it; a
# run that was killed locks nobody out. TIMES: only so many starts at the same moment.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

small=(--model resnet --resnet-version 1 --depth 8 --image-size 32 --num-classes 4 --batch-size 4
       --num-images 8)

# after_step LOG PROCESS: waits until a step is in the log.
after_step() {
  for _ in {1..1200}; do
    [ -s "$1" ] && return
    kill -0 "$2" 2>/dev/null || break
    sleep 0.05
  done
  complain "no step was done"
}

# begin NAME FLAG FOLDER...: a run without end, whose process is in $!.
begin() {
  local name=$1
  shift
  rm -f "$scratch/$name.log"
  "$MPI4DL" train "${small[@]}" --num-epochs 100000 --json-log "$scratch/$name.log" "$@" \
    >"$scratch/$name.output" 2>&1 </dev/null &
}

# together FLAG FOLDER: two runs begin at the same moment.
together() {
  local one two loser winner code
  what="two runs with $1 $2"
  begin one "$@"
  one=$!
  begin two "$@"
  two=$!
  wait -n "$one" "$two"
  code=$?
  loser=one winner=two
  if kill -0 "$one" 2>/dev/null; then loser=two winner=one; fi
  cp "$scratch/$loser.output" "$output"
  [ "$code" = 2 ] || complain "the first to end has exit code $code instead of 2"
  expect_one_sentence "$1 $2 is in use by process ${!winner} on $(uname -n) since $(date -u +%Y-)"
  echo "$loser of two: $(cat "$output")"
  what="the other run with $1 $2"
  cp "$scratch/$winner.output" "$output"
  after_step "$scratch/$winner.log" "${!winner}"
  kill -TERM "${!winner}"
  wait "${!winner}"
}

# refused FLAG FOLDER PROCESS: two ranks are kept out by that one.
refused() {
  run 60 2 "$MPI4DL" train "${small[@]}" --split-size 2 "$1" "$2"
  expect_exit 2
  expect_one_sentence "$1 $2 is in use by process $3 on $(uname -n) since"
}

# A run that was killed leaves its lock files, and no lock. Both kinds may be in one folder.
killed() {
  local folder=$scratch/killed job
  begin killed --checkpoint-dir "$folder" --checkpoint-every 1steps --run-dir "$folder"
  job=$!
  after_step "$scratch/killed.log" "$job"
  refused --checkpoint-dir "$folder" "$job"
  refused --run-dir "$folder" "$job"
  kill -9 "$job"
  wait "$job" 2>/dev/null
  run 60 1 "$MPI4DL" train "${small[@]}" --checkpoint-dir "$folder" --run-dir "$folder" --resume auto
  what="a run in the folder of one that was killed"
  expect_exit 0
  expect_text "going on behind step"
}

if [ $# -gt 0 ]; then
  for i in $(seq "$1"); do together --checkpoint-dir "$scratch/folder$i"; done
  verdict
fi
together --checkpoint-dir "$scratch/checkpoints"
together --run-dir "$scratch/run"
killed
verdict
