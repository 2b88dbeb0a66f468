#!/usr/bin/env bash
# A disk fills up: every command that writes ends with one sentence that has the reason, and leaves no part of
# a file; what was there before is as it was.
# The disks are file systems of a few KiB, mounted where nobody else sees them.
if [ -z "${MPI4DL_OWN_MOUNTS-}" ]; then
  for flags in -m -rm; do
    # shellcheck disable=SC2016 # for the other shell
    unshare "$flags" sh -c 'mount -t tmpfs none /mnt' 2>/dev/null &&
      exec unshare "$flags" env MPI4DL_OWN_MOUNTS=yes bash "$0" "$@"
  done
  echo "skipped: a full disk, which needs the right to mount one"
  exit 0
fi
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

model=(--model resnet --resnet-version 1 --depth 8 --image-size 32 --num-classes 4)
training=("${model[@]}" --batch-size 4 --num-images 16)
disk=$scratch/disk
mkdir "$disk"
trap 'umount "$disk" 2>/dev/null; rm -rf "$scratch"' EXIT

# new_disk SIZE: in $disk.
new_disk() {
  umount "$disk" 2>/dev/null
  mount -t tmpfs -o "size=$1" none "$disk"
}

# fails WORDS RANKS ARGUMENT...: because the disk is full.
fails() {
  local words=$1 ranks=$2
  shift 2
  if [ "$ranks" = 1 ]; then
    what="alone: $*"
    timeout 120 "$MPI4DL" "$@" >"$output" 2>&1 </dev/null
    status=$?
  else
    run 120 "$ranks" "$MPI4DL" "$@"
  fi
  expect_exit 1
  expect_one_sentence "$words"
  expect_text "No space left on device"
  [ -z "$(find "$disk" -name '*.partial*')" ] || complain "part of a file is left: $(ls -A "$disk")"
}

# keeps WORDS ARGUMENT...: the command cannot replace the file $disk/result, which stays.
keeps() {
  new_disk 8k
  echo "from before" >"$disk/result"
  cp /dev/zero "$disk/filler" 2>/dev/null
  fails "$1" 1 "${@:2}"
  [ "$(cat "$disk/result")" = "from before" ] || complain "the older file is not what it was"
}

trained() {
  "$MPI4DL" train "${training[@]}" --checkpoint-dir "$scratch/run" >"$output" 2>&1 </dev/null
  status=$? what="a training"
  expect_exit 0
}

weights() {
  keeps "cannot write '$disk/result.partial'" export --checkpoint "$scratch/run" --to pt --out "$disk/result"
  keeps "cannot write '$disk/result.partial'" export --checkpoint "$scratch/run" --to safetensors \
    --out "$disk/result"
}

results() {
  local asking=(--num-images 16 --checkpoint "$scratch/run")
  keeps "cannot write '$disk/result.partial'" predict "${asking[@]}" --out "$disk/result"
  keeps "the result could not be written: cannot write '$disk/result.partial'" \
    evaluate "${asking[@]}" --json "$disk/result"
}

# The older checkpoint is whole.
checkpoints() {
  new_disk 2m
  fails "the checkpoint of step 2 could not be written: cannot write" 2 train "${training[@]}" --dtype float64 \
    --split-size 2 --checkpoint-dir "$disk/run" --checkpoint-every 1steps
  expect_text "No space left on device; older ones are as they were"
  [ "$(ls "$disk/run")" = step-00000001 ] || complain "something else is left: $(ls -A "$disk/run")"
  run 120 1 "$MPI4DL" train "${training[@]}" --dtype float64 --checkpoint-dir "$scratch/elsewhere" \
    --resume "$disk/run/step-00000001"
  expect_exit 0
  expect_text "going on behind step 1 from"
}

# expect_whole_lines FILE: some, and each is JSON.
expect_whole_lines() {
  python3 - "$1" >>"$output" 2>&1 <<'END' || complain "not all lines of $1 are whole"
import json, sys
text = open(sys.argv[1]).read()
assert text.endswith("\n"), text[-80:]
print(len([json.loads(line) for line in text.splitlines()]), "lines")
END
}

logs() {
  new_disk 16k
  fails "cannot write '$disk/log'" 1 train "${training[@]}" --num-epochs 1000 --json-log "$disk/log"
  expect_whole_lines "$disk/log"
  new_disk 64k
  fails "cannot write '$disk/run/" 2 train "${training[@]}" --num-epochs 1000 --split-size 2 --run-dir "$disk/run"
  expect_whole_lines "$disk/run/metrics.jsonl"
}

# Images of ten digits, made up, in MNIST's format.
images() {
  python3 - "$scratch" <<'END'
import struct, sys
for part, count in (("train", 40), ("t10k", 20)):
    with open(f"{sys.argv[1]}/{part}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">iiii", 2051, count, 28, 28) + bytes(i % 251 for i in range(count * 784)))
    with open(f"{sys.argv[1]}/{part}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">ii", 2049, count) + bytes(i % 10 for i in range(count)))
END
  new_disk 256k
  fails "cannot write '$disk/images/" 1 data make-megapixel-mnist --mnist "$scratch" --out "$disk/images" \
    --size 512 --count 100 --val-count 10
}

# What is printed is written too.
printed() {
  what="plan and --help to /dev/full"
  for command in plan --help; do
    "$MPI4DL" "$command" >/dev/full 2>"$output" </dev/null
    status=$?
    expect_exit 1
    expect_one_sentence "the output could not be written: No space left on device"
  done
}

printed
trained
weights
results
checkpoints
logs
images
verdict
