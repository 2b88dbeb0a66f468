#!/usr/bin/env bash
# checkpoint_test.sh [KILLS]: a run that is killed, stopped or moved to other ranks ends as one that was
# left alone; damaged checkpoints are noticed; bad use gets one sentence. KILLS: only so many kills.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"
kills=${1:-2}

tiles=(--num-spatial-parts 4)
layers=(--split-size 2)

# What all runs have in common; flags of a test go first.
cat >"$scratch/run.ini" <<'END'
[train]
model=resnet
resnet-version=1
depth=8
image-size=32
num-classes=4
batch-size=4
num-images=16
num-epochs=3
dtype=float64
lr=0.01
END
training=("$MPI4DL" --config "$scratch/run.ini" train)

# train RANKS ARGUMENT...
train() {
  local ranks=$1
  shift
  run 300 "$ranks" "${training[@]}" "$@"
}

trains() {
  train "$@"
  expect_exit 0
}

# export_to FILE FOLDER: its weights as a safetensors file.
export_to() {
  "$MPI4DL" export --checkpoint "$2" --to safetensors --out "$1" >"$output" 2>&1 </dev/null
  status=$?
  what="export of $2"
  expect_exit 0
}

# same_end FOLDER LOG: the run behind them ended as the undisturbed one, to the bit.
same_end() {
  export_to "$scratch/end.safetensors" "$1"
  cmp "$scratch/end.safetensors" "$scratch/whole.safetensors" >"$output" 2>&1 ||
    complain "other weights than without interruption"
  same_losses "$2" 0
}

# same_losses LOG TOLERANCE [OTHER]: as the undisturbed run, or the other log, step by step.
same_losses() {
  python3 - "$1" "${3:-$scratch/whole.log}" "$2" >"$output" 2>&1 <<'END' || complain "other losses"
import json, sys
def losses(path):
    lines = [json.loads(line) for line in open(path)]
    return {(line["epoch"], line["step"]): line["loss"] for line in lines}
mine, whole = losses(sys.argv[1]), losses(sys.argv[2])
print(mine, whole)
assert mine and max(mine) == max(whole)
assert all(abs(mine[at] - whole[at]) <= float(sys.argv[3]) * abs(whole[at]) for at in mine)
END
}

undisturbed() {
  trains 5 "${tiles[@]}" --checkpoint-dir "$scratch/whole" --json-log "$scratch/whole.log"
  export_to "$scratch/whole.safetensors" "$scratch/whole"
}

# after_steps LOG COUNT: waits until so many steps are in the log.
after_steps() {
  for _ in {1..600}; do
    [ "$(grep -c . "$1" 2>/dev/null)" -ge "$2" ] 2>/dev/null && return
    sleep 0.05
  done
}

# killed SEED: kill -9 of one rank or of all, at a random moment.
killed() {
  local folder=$scratch/killed$1 log=$scratch/killed.log ranks=$scratch/ranks$1 job
  RANDOM=$(($1 * 7919))
  : $RANDOM $RANDOM $RANDOM # the first ones of near seeds are alike
  local steps=$((RANDOM % 11)) moment=0.$((RANDOM % 4))$((RANDOM % 10)) one=$((RANDOM % 2))
  mkdir "$ranks"
  rm -f "$log"
  # shellcheck disable=SC2016 # the rank's shell expands this, not ours
  run 300 5 bash -c 'touch "$0/$$"; exec "$@"' "$ranks" "${training[@]}" \
    "${tiles[@]}" --checkpoint-dir "$folder" --checkpoint-every 1steps --keep 2 --json-log "$log" &
  job=$!
  after_steps "$log" "$steps"
  sleep "$moment"
  local victims=("$ranks"/*)
  [ "$one" = 1 ] && victims=("${victims[$((RANDOM % 5))]}")
  kill -9 "${victims[@]##*/}" 2>/dev/null
  wait "$job"
  local left
  left=$(find "$folder" -mindepth 1 -maxdepth 1 -printf '%f ' 2>/dev/null)
  what="seed $1: killed $moment s after step $steps"
  rm -f "$log"
  trains 5 "${tiles[@]}" --checkpoint-dir "$folder" --checkpoint-every 1steps --keep 2 --resume auto \
    --json-log "$log"
  echo "seed $1: killed ${#victims[@]} ranks $moment s after step $steps; left: $left; $(grep -E 'going on|training begins|damaged' "$output")"
  what="seed $1: killed $moment s after step $steps"
  # A run that was killed behind its last step has nothing more to do.
  if [ -s "$log" ]; then same_end "$folder" "$log"; fi
  rm -rf "$folder"
}

# An epoch on tiles, one on layers, one on a single rank.
other_layouts() {
  local folder=$scratch/moved
  trains 5 "${tiles[@]}" --num-epochs 1 --checkpoint-dir "$folder"
  trains 2 "${layers[@]}" --num-epochs 2 --checkpoint-dir "$folder" --resume auto
  trains 1 --checkpoint-dir "$folder" --resume auto --json-log "$scratch/moved.log"
  expect_text "going on behind step 8"
  same_losses "$scratch/moved.log" 1e-8
  export_to "$scratch/moved.safetensors" "$folder"
  /usr/bin/python3 - "$(dirname "$0")/../../examples/python" "$scratch/moved.safetensors" \
    "$scratch/whole.safetensors" >"$output" 2>&1 <<'END' || complain "other weights after other layouts"
import sys
sys.path.insert(0, sys.argv[1])
from weights import read_weights
mine, whole = map(read_weights, sys.argv[2:])
assert mine.keys() == whole.keys()
size = sum(v.square().sum() for v in whole.values()).sqrt()
for name, values in whole.items():
    assert (mine[name] - values).norm() <= 1e-8 * max(values.norm(), 1e-6 * size), name
END
}

# Checkpoints of format version 1 have other names for the state of the optimizer. Training goes on from them as
# in the program that wrote them (see make.sh there), and writes the new names.
older_format() {
  local stored names optimizer
  stored=$(dirname "$0")/../data/checkpoint_v1
  for optimizer in sgd adam; do
    python3 -m tarfile -e "$stored/$optimizer.tar.xz" "$scratch"
    run 300 1 "$MPI4DL" --config "$stored/run.ini" train --optimizer "$optimizer" --num-epochs 2 --keep 1 \
      --checkpoint-dir "$scratch/$optimizer" --resume auto --json-log "$scratch/$optimizer.log"
    what="$optimizer from format version 1"
    expect_exit 0
    expect_text "going on behind step 4 from"
    # Other processors add in another order.
    same_losses "$scratch/$optimizer.log" 1e-12 "$stored/$optimizer.log"
    names=$(grep -oE '"(version": [0-9]+|[a-z_]+/stem.conv.weight")' "$scratch/$optimizer/step-00000008/manifest.json" |
      tr -d '\n"')
    case $optimizer in
      sgd) [ "$names" = "version: 3momentum_buffer/stem.conv.weight" ] ;;
      adam) [ "$names" = "version: 3exp_avg/stem.conv.weightexp_avg_sq/stem.conv.weight" ] ;;
    esac || complain "unexpected version or names: $names"
  done
}

# signalled SIGNAL RANKS ARGUMENT...: the launcher, or the only process, gets it in the middle of a run.
signalled() {
  local signal=$1 ranks=$2 folder=$scratch/signal-$1-$2 log=$scratch/signal.log
  shift 2
  rm -f "$log"
  # shellcheck disable=SC2206 # MPIRUN holds a command with its flags
  local launcher=($MPIRUN "$ranks")
  [ "$ranks" = 1 ] && launcher=()
  what="$ranks ranks and SIG$signal"
  "${launcher[@]}" "${training[@]}" "$@" --num-epochs 100000 \
    --checkpoint-dir "$folder" --checkpoint-every 100000 --json-log "$log" >"$output" 2>&1 </dev/null &
  local job=$!
  after_steps "$log" 2
  kill "-$signal" "$job"
  wait "$job"
  status=$?
  expect_exit 0
  local steps
  steps=$(wc -l <"$log")
  expect_text "stopped by a signal; $folder/step-$(printf %08d "$steps") has everything up to here"
  trains "$ranks" "$@" --num-epochs $((steps / 4 + 1)) --checkpoint-dir "$folder" --resume auto
  expect_text "going on behind step $steps from"
}

# One byte of the newest checkpoint is another: the one before is used, and says so.
damaged() {
  local folder=$scratch/damaged
  trains 2 "${layers[@]}" --checkpoint-dir "$folder" --checkpoint-every 2steps
  flip "$folder/step-00000012/part-00001.safetensors" 5000
  trains 2 "${layers[@]}" --checkpoint-dir "$folder" --checkpoint-every 2steps --resume auto \
    --json-log "$scratch/damaged.log"
  expect_text "step-00000012 is damaged (part-00001.safetensors has"
  expect_text "going on behind step 10 from $folder/step-00000010"
  what="after a damaged checkpoint"
  same_losses "$scratch/damaged.log" 1e-8
  [ "$(ls "$folder")" = "$(printf 'step-%08d\n' 8 10 12)" ] || complain "unexpected checkpoints"
}

# flip FILE PLACE: one bit of the byte there.
flip() {
  python3 - "$1" "$2" <<'END'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 1]))
END
}

# refuses CODE WORDS RANKS ARGUMENT...: training is asked for it.
refuses() {
  local code=$1 words=$2 ranks=$3
  shift 3
  if [ "$ranks" = 1 ]; then
    alone "$code" "$words" --config "$scratch/run.ini" train "$@"
    return
  fi
  train "$ranks" "$@"
  expect_exit "$code"
  expect_one_sentence "$words"
}

# alone CODE WORDS ARGUMENT...: one process is asked for it, without mpirun.
alone() {
  local code=$1 words=$2
  shift 2
  what="alone: $*"
  timeout 120 "$MPI4DL" "$@" >"$output" 2>&1 </dev/null
  status=$?
  expect_exit "$code"
  expect_one_sentence "$words"
}

bad_flags() {
  local none=$scratch/none
  refuses 2 "--checkpoint-every 3weeks is not how often" 1 --checkpoint-dir "$none" --checkpoint-every 3weeks
  refuses 2 "--checkpoint-every 0steps is not how often" 1 --checkpoint-dir "$none" --checkpoint-every 0steps
  refuses 2 "--keep: 0 is not a number of at least 1" 1 --checkpoint-dir "$none" --keep 0
  refuses 2 "--checkpoint-every requires --checkpoint-dir" 1 --checkpoint-every 2
  refuses 2 "--keep requires --checkpoint-dir" 1 --keep 2
  refuses 2 "--resume auto requires --checkpoint-dir" 1 --resume auto
  refuses 2 "cannot make --checkpoint-dir /dev/null/run: Not a directory" 2 --checkpoint-dir /dev/null/run
}

# What a run cannot go on from.
bad_resume() {
  local folder=$scratch/moved none=$scratch/none one=$scratch/one
  local newest=$folder/step-00000012
  refuses 2 "there is no checkpoint in '$none'" 1 --resume "$none"
  refuses 2 "has checkpoints already, up to step 12; resume from there, or choose another folder (--resume auto, --checkpoint-dir)" 1 --checkpoint-dir "$folder"
  refuses 2 "has checkpoints of later steps, up to 12" 1 --checkpoint-dir "$folder" --resume "$folder/step-00000004"
  refuses 2 "was trained with --depth 8, not 14" 2 "${layers[@]}" --depth 14 --resume "$newest"
  refuses 2 "was trained with --image-size 32, not 64" 1 --image-size 64 --resume "$newest"
  refuses 2 "was trained with --optimizer sgd, not adam" 1 --optimizer adam --resume "$newest"
  refuses 2 "was trained with --dtype float64, not float32" 1 --dtype float32 --resume "$newest"
  refuses 2 "was trained with an effective batch of 4, not 8" 1 --batch-size 8 --resume "$newest"
  refuses 2 "was trained with --seed 1, not 2" 1 --seed 2 --resume "$newest"
  refuses 2 "was trained with this number of images: 16, not 20" 1 --num-images 20 --resume "$newest"
  cp -r "$newest" "$one"
  rm "$one/manifest.json"
  refuses 2 "there is no checkpoint in '$one'" 1 --resume "$one"
  echo '{"format": "another"}' >"$one/manifest.json"
  refuses 1 "its manifest is not what was written" 1 --resume "$one"
  cp "$newest/manifest.json" "$one"
  truncate -s -1 "$one/part-00000.safetensors"
  refuses 1 "part-00000.safetensors has" 2 --resume "$one"
  alone 1 "part-00000.safetensors has" export --checkpoint "$one" --to pt --out "$scratch/x.pt"
  rm "$one/part-00000.safetensors"
  refuses 1 "cannot open '$one/part-00000.safetensors'" 1 --weights "$one"
  mkdir "$scratch/all" && mv "$one" "$scratch/all/step-00000012"
  refuses 1 "no checkpoint in $scratch/all is whole" 2 --checkpoint-dir "$scratch/all" --resume auto
}

bad_weights() {
  local newest=$scratch/moved/step-00000012 none=$scratch/none
  alone 2 "there are no weights '$none'" export --checkpoint "$none" --to pt --out "$scratch/x.pt"
  mkdir "$scratch/empty"
  alone 2 "there is no checkpoint in '$scratch/empty'" export --checkpoint "$scratch/empty" --to pt --out "$scratch/x.pt"
  alone 2 "--to: onnx not in" export --checkpoint "$newest" --to onnx --out "$scratch/x"
  alone 1 "cannot create '/nowhere/x.pt.partial'" export --checkpoint "$newest" --to pt --out /nowhere/x.pt
  run 120 2 "$MPI4DL" export --checkpoint "$newest" --to pt --out "$scratch/x.pt"
  expect_exit 2
  expect_one_sentence "export needs one process only"
  refuses 2 "there are no weights '$none'" 1 --weights "$none"
  alone 2 "has no stem1.conv.weight: these are weights of another model" train --model amoebanet --num-layers 3 \
    --num-filters 16 --num-classes 4 --batch-size 4 --num-images 16 --weights "$newest"
  refuses 2 "has a head.linear.weight of 4x64, but the model's is 5x64" 1 --num-classes 5 --weights "$newest"
  echo "these are no weights" >"$scratch/text"
  refuses 1 "'$scratch/text' is no safetensors file" 2 --weights "$scratch/text"
  /usr/bin/python3 -c 'import sys, torch; torch.save({"epoch": 3}, sys.argv[1])' "$scratch/other.pt"
  refuses 1 "its entry 'epoch' is no tensor; save a state_dict alone" 1 --weights "$scratch/other.pt"
}

undisturbed
for seed in $(seq "$kills"); do killed "$seed"; done
[ $# -gt 0 ] && verdict
other_layouts
older_format
damaged
signalled USR1 5 "${tiles[@]}"
signalled TERM 1
bad_flags
bad_resume
bad_weights
verdict
