#!/usr/bin/env bash
# interrupt_test.sh [MOMENTS]: Ctrl-C on a terminal, on one rank and under mpirun: a run saves what it has or
# says why not, and leaves no process and no file of shared memory. MOMENTS: only so many random ones of each.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

# Open MPI's files, where nobody else's are.
export TMPDIR=$scratch/tmp OMPI_MCA_btl_vader_backing_directory=$scratch/shm
mkdir "$TMPDIR" "$OMPI_MCA_btl_vader_backing_directory"
terminal=$(dirname "$0")/../support/terminal.py
log=$scratch/log

cat >"$scratch/run.ini" <<'END'
[train]
model=resnet
resnet-version=1
depth=8
num-classes=4
batch-size=4
num-images=16
num-epochs=100000
END
quick=(--image-size 32)
slow=(--image-size 256 --dtype float64 --batch-size 16) # a step takes a second or more
# A step takes five seconds or more, with the memory of a quarter of its images.
slower=(--image-size 320 --dtype float64 --batch-size 64 --parts 4 --num-images 64)
keeping=(--checkpoint-every 1steps --keep 2)

wrapper=() # around the launcher

# types RANKS START PAUSES ARGUMENT...: trains, and types Ctrl-C so long after START (terminal.py), or after so
# many steps.
types() {
  local ranks=$1 start=$2 pauses=$3
  shift 3
  # shellcheck disable=SC2206 # MPIRUN holds a command with its flags
  local launcher=($MPIRUN "$ranks")
  [ "$ranks" = 1 ] && launcher=()
  what="$ranks ranks, Ctrl-C $pauses s after $start: $*"
  rm -f "$log"
  [ "$start" -gt 0 ] 2>/dev/null && start=lines:$start:$log
  timeout --kill-after=5 120 python3 "$terminal" "$start" "$pauses" \
    "${wrapper[@]}" "${launcher[@]}" "$MPI4DL" --config "$scratch/run.ini" train --json-log "$log" "$@" \
    >"$output" 2>&1 </dev/null
  status=$?
}

# Processes of this test know its folder by their environment.
ours() { env -u TMPDIR grep -lsF "TMPDIR=$TMPDIR" /proc/[0-9]*/environ; }

# The last rank may need a second after its launcher is gone.
expect_nothing_left() {
  for _ in {1..40}; do
    [ -z "$(ours)" ] && break
    sleep 0.1
  done
  [ -z "$(ours)" ] || complain "processes are left: $(ours)"
  local files
  files=$(find "$TMPDIR" "$OMPI_MCA_btl_vader_backing_directory" -type f -o -name '*.partial*')
  [ -z "$files" ] || complain "files are left: $files"
}

# expect_resumes RANKS FOLDER ARGUMENT...: what is in the folder is whole, and a run goes on from it.
expect_resumes() {
  local ranks=$1 folder=$2 before=$what newest
  shift 2
  newest=$(basename "$(find "$folder" -name 'step-*' | sort | tail -n 1)")
  run 120 "$ranks" "$MPI4DL" --config "$scratch/run.ini" train --checkpoint-dir "$folder" --resume auto \
    --num-epochs 1 "$@"
  what="$before; then --resume auto"
  expect_exit 0
  expect_text "going on behind step $((10#${newest#step-})) from $folder/$newest"
  grep -q damaged "$output" && complain "a checkpoint is damaged"
}

one_rank() {
  local folder=$scratch/one
  types 1 2 0.01 "${quick[@]}" --checkpoint-dir "$folder"
  expect_exit 130
  expect_one_sentence "stopping after this step, which is saved to $folder; press Ctrl-C again to end at once"
  expect_text "stopped by a signal; $folder/step-$(printf %08d "$(wc -l <"$log")") has everything up to here"
  expect_nothing_left
  expect_resumes 1 "$folder" "${quick[@]}"
}

one_rank_twice() {
  local folder=$scratch/twice
  types 1 1 0.2,0.3 "${slow[@]}" --checkpoint-dir "$folder" "${keeping[@]}"
  expect_exit 130
  expect_text "mpi4dl: ended by Ctrl-C; the last checkpoint in $folder is whole"
  [ "$(wc -l <"$log")" = 1 ] || complain "it did not end at once"
  [ "$(ls "$folder")" = step-00000001 ] || complain "unexpected checkpoints: $(ls "$folder")"
  expect_nothing_left
}

nothing_to_save() {
  types 1 1 0.01 "${quick[@]}"
  expect_exit 130
  expect_one_sentence "ended by Ctrl-C; nothing was saved: there is no --checkpoint-dir"
  expect_nothing_left
}

# Open MPI 5 shows nothing that its ranks say after Ctrl-C.
shows_words=true
# shellcheck disable=SC2086 # MPIRUN holds a command with its flags
$MPIRUN 1 --version | grep -qE ' [5-9][.]' && shows_words=false

# mpirun leaves its ranks a second.
under_mpirun() {
  local folder=$scratch/ranks saved
  types 2 2 0.01 "${quick[@]}" --split-size 2 --checkpoint-dir "$folder"
  expect_exit 1
  saved=$folder/step-$(printf %08d "$(wc -l <"$log")")
  [ -d "$saved" ] || complain "there is no $saved, but $(ls "$folder")"
  if $shows_words; then
    expect_one_sentence "mpirun ends this job"
    expect_text "stopped by a signal; $saved has everything up to here"
  fi
  expect_nothing_left
  expect_resumes 2 "$folder" "${quick[@]}" --split-size 2
}

# A step that takes longer is lost, and those before are not.
too_slow_under_mpirun() {
  local folder=$scratch/slow
  types 2 1 0.1 "${slower[@]}" --split-size 2 --checkpoint-dir "$folder" "${keeping[@]}"
  expect_exit 1
  $shows_words &&
    expect_one_sentence "mpirun ends this job and kills its ranks about 1 s from now; if the step is saved to $folder"
  grep -q '^stopped' "$output" && complain "a step of less than a second"
  expect_nothing_left
  expect_resumes 2 "$folder" "${slower[@]}" --split-size 2
  expect_text "going on behind step 1 "
}

# The example makes a SIGUSR1 of it, which leaves ranks the time that they need.
interruptible() {
  local folder=$scratch/interruptible
  wrapper=("$(dirname "$0")/../../examples/interruptible.sh")
  types 2 2 0.01 "${quick[@]}" --split-size 2 --checkpoint-dir "$folder"
  wrapper=()
  expect_exit 0
  expect_one_sentence "stopping after this step, which is saved to $folder"
  expect_text "stopped by a signal; $folder/step-$(printf %08d "$(wc -l <"$log")") has everything up to here"
  expect_nothing_left
}

under_mpirun_twice() {
  types 2 1 0.1,0.5 "${slow[@]}" --split-size 2 --checkpoint-dir "$scratch/ranks2" "${keeping[@]}"
  expect_exit 1
  expect_nothing_left
}

# random RANKS SEED ARGUMENT...: once, within four seconds after the program has begun.
random() {
  local ranks=$1 folder=$scratch/random moment
  RANDOM=$(($2 * 7919 + ranks))
  : $RANDOM $RANDOM $RANDOM # the first ones of near seeds are alike
  moment=$((RANDOM % 4)).$((RANDOM % 10))$((RANDOM % 10))
  shift 2
  rm -rf "$folder"
  types "$ranks" "processes:$ranks" "$moment" --image-size 64 "$@" --checkpoint-dir "$folder" "${keeping[@]}"
  echo "$ranks ranks, Ctrl-C after $moment s: code $status, $(wc -l 2>/dev/null <"$log") steps," \
    "$(grep -c . <<<"$(ls "$folder" 2>/dev/null)") checkpoints: $(grep -e '^mpi4dl: ' -e '^stopped' "$output" | tail -n 1 | cut -c1-100)"
  grep -q -e '^mpi4dl: ' -e '^stopped by' "$output" || [ -n "$(find "$folder" -name 'step-*' 2>/dev/null)" ] ||
    complain "neither a checkpoint nor a sentence"
  expect_nothing_left
  if [ -d "$folder" ] && [ -n "$(find "$folder" -name 'step-*')" ]; then
    expect_resumes "$ranks" "$folder" --image-size 64 "$@"
  fi
}

if [ $# -gt 0 ]; then
  for seed in $(seq "$1"); do
    random 1 "$seed"
    random 2 "$seed" --split-size 2
  done
  verdict
fi
one_rank
one_rank_twice
nothing_to_save
under_mpirun
too_slow_under_mpirun
interruptible
under_mpirun_twice
verdict
