#!/usr/bin/env bash
# The models of examples/python load what export writes and give the same logits; and the program reads
# what Python's torch.save writes.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"
python=/usr/bin/python3 # Debian's, for which python3-torch is
examples=$(dirname "$0")/../../examples/python

# succeeds COMMAND...
succeeds() {
  what=$*
  timeout 400 "$@" >"$output" 2>&1 </dev/null
  status=$?
  expect_exit 0
}

# compare NAME FORMAT IMAGE_SIZE MODEL ARGUMENTS...: trains a little, exports, and leaves both answers.
compare() {
  local name=$1 format=$2 size=$3
  shift 3
  local flags=(--model resnet --resnet-version "$2" --depth "$3")
  [ "$1" = amoebanet ] && flags=(--model amoebanet --num-layers "$2" --num-filters "$3")
  succeeds "$MPI4DL" train "${flags[@]}" --image-size "$size" --batch-size 2 --num-images 6 --lr 0.01 \
    --checkpoint-dir "$scratch/$name"
  succeeds "$MPI4DL" export --checkpoint "$scratch/$name" --to "$format" --out "$scratch/$name.$format"
  succeeds "$WRITE_LOGITS" "$scratch/$name.$format" "$scratch/$name.logits.safetensors" "$size" "$size" "$@"
}

if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: $python has no torch (Debian: python3-torch)"
  exit 0
fi
compare resnet_v1 pt 32 resnet 1 8
compare resnet_v2 safetensors 40 resnet 2 11
compare amoebanet pt 64 amoebanet 3 16
here=$(dirname "$0")
succeeds "$python" "$here/python_test.py" "$examples" "$scratch" save
succeeds "$WRITE_LOGITS" "$scratch/python.pt" "$scratch/python.logits.safetensors" 32 32 resnet 2 11
succeeds "$python" "$here/python_test.py" "$examples" "$scratch" compare
cat "$output"
verdict
