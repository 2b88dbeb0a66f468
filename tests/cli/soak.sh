#!/usr/bin/env bash
# soak.sh [SECONDS]: trains in layouts of every kind for about so long each (60), and expects that the
# loss falls and that memory does not grow. Not part of the tests: it takes many minutes. Needs
# MPI4DL (the program) and MPIRUN ("mpirun -np") in the environment.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

seconds=${1:-60}
log=$scratch/log.jsonl
model=(--model resnet --resnet-version 1 --depth 20 --image-size 64 --num-classes 4
       --num-images 800 --num-epochs 1000 --json-log "$log")

# soak RANKS ARGUMENT...
soak() {
  local ranks=$1
  shift
  rm -f "$log"
  run "$seconds" "$ranks" "$MPI4DL" train "${model[@]}" "$@"
  python3 - "$log" <<'END' || complain "the loss does not fall, or memory grows"
import json, sys
lines = []
for text in open(sys.argv[1]):
    try: lines.append(json.loads(text))
    except ValueError: pass  # the last line was cut
if len(lines) < 50: sys.exit("only %d steps" % len(lines))
loss = [line["loss"] for line in lines]
mean = lambda values: sum(values) / len(values)
growth = lines[49]["resident_bytes"] / lines[9]["resident_bytes"]
steady = lines[-1]["resident_bytes"] / lines[49]["resident_bytes"]
print("%4d steps, loss %.3f -> %.3f, resident memory steps 10 to 50 x%.4f, to the end x%.4f"
      % (len(lines), mean(loss[:10]), mean(loss[-10:]), growth, steady))
sys.exit(not (mean(loss[-10:]) < 0.7 * mean(loss[:10]) and growth < 1.02 and steady < 1.02))
END
  echo "  $ranks ranks: $*"
}

soak 1 --batch-size 8
soak 5 --batch-size 8 --num-spatial-parts 4
soak 5 --batch-size 8 --num-spatial-parts 4 --halo-D2 --fused-layers 2 --recompute
soak 4 --batch-size 8 --split-size 4 --parts 4
soak 4 --batch-size 4 --gems --split-size 4
soak 5 --batch-size 4 --gems --num-spatial-parts 4
soak 6 --batch-size 4 --split-size 2 --num-spatial-parts 2
verdict
