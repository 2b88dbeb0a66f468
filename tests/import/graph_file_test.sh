#!/usr/bin/env bash
# A model with constants, as a file of PyTorch and as the graph that import writes of it, is the same
# with the same weights, and these need not have the constants.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"
file=$(realpath "$(dirname "$MPI4DL")/../import-files")/arithmetic.pt2
cd "$scratch" || exit 1

# does COMMAND ARGUMENT...
does() {
  run 120 1 "$MPI4DL" "$@"
  expect_exit 0
}

# evaluates WEIGHTS MODEL...: what is found with these weights goes to the file `found`.
evaluates() {
  does evaluate --checkpoint "$@" --num-images 6 --batch-size 2
  grep -oE "loss .* AUC [0-9.]+" "$output" >found || complain "it finds nothing"
}

does import "$file" --to-graph net.graph
expect_text "what is never trained is in net.graph.safetensors"
does train --model "$file" --num-images 6 --batch-size 2 --lr 0.01 --eval-every never --checkpoint-dir run
does export --checkpoint run --to pt --out trained.pt
evaluates run
cp found expected
for model in "$file" net.graph; do
  evaluates trained.pt --model "$model"
  diff expected found || complain "it finds something else"
done
rm net.graph.safetensors
does train --model net.graph --num-images 2 --batch-size 2 --eval-every never
expect_text "is never trained, and net.graph.safetensors has no values of it"
verdict
