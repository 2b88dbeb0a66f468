#!/usr/bin/env bash
# bench/pytorch.py runs both sides, finds that they train alike, and notices when they do not.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"
python=/usr/bin/python3 # Debian's, for which python3-torch is
script=$(dirname "$0")/../../bench/pytorch.py

# On one core no thread waits for another, and a busy machine costs less time.
core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')

# benchmark ARGUMENT...: leaves its exit code in `status`, its words in $output.
benchmark() {
  what="pytorch.py $*"
  timeout 400 taskset -c "$core" "$python" "$script" --image-size 64 --rounds 2 --steps 1 "$@" \
    >"$output" 2>&1 </dev/null
  status=$?
}

if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: $python has no torch (Debian: python3-torch)"
  exit 0
fi

benchmark --mpi4dl "$MPI4DL" --model amoebanet --num-layers 3 --num-filters 16 --json "$result"
expect_exit 0
cat "$output"
"$python" - "$result" <<'END' || complain "its figures are not what they should be"
import json, sys
from statistics import median
result = json.load(open(sys.argv[1]))
layouts, baselines = ["mpi4dl, 5 ranks", "mpi4dl, one rank"], ["PyTorch, contiguous", "PyTorch, channels-last"]
assert list(result["models"]) == ["amoebanet"]
figures = result["models"]["amoebanet"]
assert figures["parameters"] == 100886
assert list(figures["apart"]) == layouts and all(apart < 1e-10 for apart in figures["apart"].values())
sides = figures["sides"]
assert list(sides) == layouts + baselines
seconds = {name: median(sum(side["seconds"], [])) for name, side in sides.items()}
better = min(seconds[name] for name in baselines)
for name, side in sides.items():
    assert [len(steps) for steps in side["seconds"]] == [1, 1] and seconds[name] > 0
    assert abs(side["ratio"] - better / seconds[name]) < 1e-9
    assert abs(side["images_per_s"] - 2 / seconds[name]) < 1e-9
END

# Another way to learn in the program alone.
printf '#!/bin/sh\n[ "$1" = train ] && set -- "$@" --weight-decay 1e-3\nexec "%s" "$@"\n' "$MPI4DL" >"$scratch/other"
chmod +x "$scratch/other"
benchmark --mpi4dl "$scratch/other" --model resnet --depth 11
expect_exit 1
expect_text "pytorch.py: PyTorch and 'mpi4dl, 5 ranks' do not train alike"

benchmark --mpi4dl "$scratch/nothing"
expect_exit 2
expect_text "there is no program $scratch/nothing; build it"

verdict
