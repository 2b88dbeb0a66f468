#!/usr/bin/env bash
# A model of PyTorch, trained for five steps on four tiles and a rank behind them: what export writes fits
# the same Python model, name by name, which then gives the logits that we give.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"
python=/usr/bin/python3 # Debian's, for which python3-torch is
definitions=$(realpath "$(dirname "$0")/../data/import")
examples=$(realpath "$(dirname "$0")/../../examples/python")
files=$(dirname "$MPI4DL")/../import-files

# does RANKS PROGRAM ARGUMENT...
does() {
  run 120 "$@"
  expect_exit 0
}

# round_trip NET CLASS HEIGHT WIDTH
round_trip() {
  local run=$scratch/$1
  does 5 "$MPI4DL" train --model "$files/$1.pt2" --num-spatial-parts 4 --split-size 2 --batch-size 2 \
    --num-images 10 --lr 0.01 --eval-every never --checkpoint-dir "$run"
  does 1 "$MPI4DL" export --checkpoint "$run" --to pt --out "$run.pt"
  does 1 "$WRITE_LOGITS" "$run" "$run.safetensors" "$3" "$4"
  what="$1 in Python"
  PYTHONPATH=$definitions:$examples "$python" -B - "$2" "$run" >"$output" 2>&1 <<'END' || complain "it differs"
import sys, nets, torch
from weights import read_weights
name, run = sys.argv[1:]
model, answer = getattr(nets, name)(), read_weights(run + ".safetensors")
print(model.load_state_dict(torch.load(run + ".pt"), strict=True))
with torch.no_grad():
    expected = model.eval()(answer["images"].contiguous())
apart = (answer["logits"] - expected).norm() / expected.norm()
print(f"{name}: {apart:.2e} apart")
assert apart <= 1e-5 and expected.norm() > 1e-2
END
  cat "$output"
}

if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: $python has no torch (Debian: python3-torch)"
  exit 0
fi
round_trip residual Residual 29 23
round_trip squeeze_excite SqueezeExcite 27 21
round_trip tied Tied 21 25
verdict
