#!/usr/bin/env bash
# A model that comes from a file: trained on tiles, its checkpoint is enough for everything that follows,
# on other ranks and without the file; fine-tuned as its flags say.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"
tests=$(realpath "$(dirname "$0")/..")
cd "$scratch" || exit 1

cat >net.graph <<'END'
input 3x24x24
cell stem
stem.conv = convolution(input) out_channels=6 kernel=3x3 padding=1x1 bias=false with conv1.weight
stem.bn = batch_norm(stem.conv) with bn1.weight, bn1.bias, bn1.running_mean, bn1.running_var
stem.relu = relu(stem.bn)
cell body
body.conv = convolution(stem.relu) out_channels=8 kernel=3x3 stride=2x2 padding=1x1 # halves it
body.bn = batch_norm(body.conv)
body.relu = relu(body.bn)
cell head
head.pool = global_average_pooling(body.relu)
head.fc = linear(head.pool) out_features=4 with fc.weight, fc.bias
output head.fc
END
cp net.graph copy.graph

# does RANKS COMMAND ARGUMENT...: ends with 0.
does() {
  local ranks=$1
  shift
  run 120 "$ranks" "$MPI4DL" "$@"
  expect_exit 0
}

# refuses SENTENCE COMMAND ARGUMENT...: on one rank.
refuses() {
  local sentence=$1
  shift
  run 60 1 "$MPI4DL" "$@"
  expect_exit 2
  expect_one_sentence "$sentence"
}

# tensors FILE PYTHON [OTHERS]: the expression is true of the type, shape and bytes of the tensors, by name.
tensors() {
  what="$1: $2"
  python3 - "$@" >"$output" 2>&1 <<'END' || complain "not true"
import json, struct, sys
def read(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    return {name: (t["dtype"], t["shape"], data[8 + length:][slice(*t["data_offsets"])])
            for name, t in header.items() if name != "__metadata__"}
tensors = read(sys.argv[1])
others = read(sys.argv[3]) if len(sys.argv) > 3 else {}
print({name: t[:2] for name, t in tensors.items()})
assert eval(sys.argv[2], {"tensors": tensors, "others": others})
END
}

tiles=(--num-spatial-parts 4 --split-size 2)
tuned=(--freeze "conv1.*" --freeze-batch-norm --lr-factor-for "fc.*=10" --weight-decay 0.1
       --weight-decay-for "*.bias=0,fc.weight=0.01")
training=(--dtype float64 --batch-size 4 --num-images 12 --lr 0.01)

# --- Whatever its flags, a layout computes what one rank computes ---

does 5 verify --model net.graph "${tiles[@]}" --batch-size 3 --steps 2
does 5 verify --model net.graph --image-size 23x37 "${tiles[@]}" --batch-size 2
does 5 verify --model net.graph "${tiles[@]}" "${tuned[@]}" --batch-size 3 --steps 3 --momentum 0.9
does 3 verify --model net.graph --stages 1x3 "${tuned[@]}" --optimizer adamw --batch-size 2 --steps 3
does 1 plan --model net.graph --freeze "*.weight" --batch-size 2
does 1 bench train --model net.graph --against one-rank --batch-size 2 --warmup 0 --iterations 1

# --- Three steps on tiles; then everything from the checkpoint alone, on other ranks ---

does 5 train --model net.graph "${training[@]}" "${tiles[@]}" --checkpoint-dir run1 --normalise imagenet
expect_text "net.graph, "
expect_text "images 24 from synthetic"
rm net.graph
expect_text "body.conv = convolution(stem.relu) out_channels=8 kernel=3x3 stride=2x2 padding=1x1" \
  run1/step-00000003/model.graph
does 1 evaluate --checkpoint run1 --num-images 12 --dtype float64 --json one.json
does 4 evaluate --checkpoint run1 --num-images 12 --dtype float64 --json four.json --stages 2x2
python3 - >"$output" 2>&1 <<'END' || complain "another loss on four ranks"
import json
one, four = (json.load(open(name)) for name in ["one.json", "four.json"])
print(one, four)
assert abs(one["loss"] - four["loss"]) < 1e-9 and one["confusion"] == four["confusion"]
END
does 1 evaluate --checkpoint run1 --num-images 12 --normalise 0.485:0.456:0.406,0.229:0.224:0.225
refuses "--normalise none contradicts run1/step-00000003, which was trained with imagenet" \
  evaluate --checkpoint run1 --normalise none
refuses "--model copy.graph contradicts run1/step-00000003" evaluate --checkpoint run1 --model copy.graph
does 1 predict --checkpoint run1 --num-images 3 --out p.csv
does 1 plan --checkpoint run1 --batch-size 2
expect_text "net.graph"
does 1 export --checkpoint run1 --to safetensors --out w.safetensors
tensors w.safetensors 'set(tensors) == {"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean",
  "bn1.running_var", "body.conv.weight", "body.conv.bias", "body.bn.weight", "body.bn.bias",
  "body.bn.running_mean", "body.bn.running_var", "fc.weight", "fc.bias"}'
does 1 export --checkpoint run1 --to pt --out w.pt

# --- It goes on without the file, with the same graph under another name, and not with another ---

again=("${training[@]}" --normalise imagenet --checkpoint-dir run1 --resume auto)
does 2 train "${again[@]}" --stages 1x2 --num-epochs 2
expect_text "going on behind step 3 from run1/step-00000003"
does 1 train "${again[@]}" --model copy.graph --num-epochs 3
expect_text "going on behind step 6 from run1/step-00000006"
sed 's/stride=2x2 //' copy.graph >other.graph
refuses "run1/step-00000009 was trained with another graph, whose line 7 is 'body.conv = convolution(stem.relu)" \
  train "${again[@]}" --model other.graph
refuses "was trained with --model copy.graph, not resnet" train "${again[@]}" --model resnet --depth 8 \
  --resnet-version 1 --global-pool-head --image-size 24 --num-classes 4
refuses "was trained with --freeze nothing, not fc.*" train "${again[@]}" --freeze "fc.*"
refuses "was trained with --freeze-batch-norm false, not true" train "${again[@]}" --freeze-batch-norm
refuses "was trained with --normalise imagenet, not 0.5,0.5" train "${training[@]}" --checkpoint-dir run1 --resume auto

# --- Fine-tuned: from weights, with other classes, part of it frozen, part of it fresh ---

python3 - <<'END'
import json, struct
data = open("w.safetensors", "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header, values = json.loads(data[8:8 + length]), data[8 + length:]
header["bn1.num_batches_tracked"] = {"dtype": "I64", "shape": [], "data_offsets": [len(values), len(values) + 8]}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("tracked.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + values + struct.pack("<q", 12345))
END
does 5 train --model copy.graph --num-classes 3 --checkpoint tracked.safetensors "${training[@]}" "${tiles[@]}" \
  "${tuned[@]}" --optimizer adamw --reinit "body.conv.bias" --checkpoint-dir run2
does 1 export --checkpoint run2 --to safetensors --out tuned.safetensors
tensors tuned.safetensors 'tensors["fc.weight"][1] == [3, 8] and tensors["fc.bias"][1] == [3]'
tensors tuned.safetensors 'tensors["bn1.num_batches_tracked"] == ("I64", [], (12345).to_bytes(8, "little"))'
tensors tuned.safetensors 'all(tensors[n] == others[n] for n in others
  if n.startswith("bn1.") or ".bn." in n or n == "conv1.weight")' tracked.safetensors
tensors tuned.safetensors 'all(tensors[n] != others[n] for n in ["body.conv.weight", "body.conv.bias"])' \
  tracked.safetensors
what="the checkpoint of what is partly frozen"
grep -q 'exp_avg/conv1' run2/step-00000003/manifest.json && complain "it has optimizer state of what is frozen"
does 1 evaluate --checkpoint run2 --num-images 6
does 2 train "${training[@]}" "${tuned[@]}" --stages 1x2 --optimizer adamw --checkpoint-dir run2 --resume auto \
  --num-epochs 2
expect_text "going on behind step 3"
does 1 plan --checkpoint run2 --batch-size 2
# Its weights are the start of another one, whose classes are others again.
does 1 train --checkpoint run2 --num-classes 5 "${training[@]}" --checkpoint-dir run3
does 1 export --checkpoint run3 --to safetensors --out five.safetensors
tensors five.safetensors 'tensors["fc.weight"][1] == [5, 8] and "bn1.num_batches_tracked" in tensors'

# --- A model of PyTorch: from its weights, and back under all of its names ---

files=$(dirname "$MPI4DL")/../import-files
cp "$files/tied.pt2" mine.pt2
does 1 evaluate --model mine.pt2 --num-images 6
does 5 train --model mine.pt2 "${training[@]}" "${tiles[@]}" --num-classes 3 --freeze "stem.*" --checkpoint-dir run4
rm mine.pt2
does 1 evaluate --checkpoint run4 --num-images 6
does 2 train "${training[@]}" --freeze "stem.*" --stages 1x2 --checkpoint-dir run4 --resume auto --num-epochs 2
refuses "holds mine.pt2 as it is for images of 21x25; for another --image-size give its file with --model" \
  train --checkpoint run4 --image-size 32 --num-images 4 --batch-size 2
does 1 export --checkpoint run4 --to safetensors --out tied.safetensors
tensors tied.safetensors 'tensors["steps"] == ("I64", [], (7).to_bytes(8, "little"))'
tensors tied.safetensors 'tensors["again.weight"] == tensors["twice.weight"]'
tensors tied.safetensors '{"unused.weight", "unused.bias", "bn.num_batches_tracked"} <= set(tensors)'
does 1 export --checkpoint run4 --to pt --out tied.pt
python=/usr/bin/python3
if "$python" -c 'import torch' 2>/dev/null; then
  what="strict loading in Python"
  PYTHONPATH=$tests/data/import "$python" - >"$output" 2>&1 <<'END' || complain "the state_dict does not fit"
import nets, torch
model = nets.Tied()
weights = torch.load("tied.pt")
head = next(name for name, values in model.state_dict().items() if values.shape != weights[name].shape)
for module in [model.get_submodule(head.rsplit(".", 1)[0])]:
    module.weight = torch.nn.Parameter(module.weight[:3])
    module.bias = torch.nn.Parameter(module.bias[:3])
print(model.load_state_dict(weights, strict=True))
END
fi

# --- TorchScript: the same way, with the size that it does not say ---

cp "$files/residual.script.pt" script.pt
refuses "'script.pt' does not say for images of which size it is; say so with --image-size" import script.pt
does 1 import script.pt --image-size 31x34
expect_text "773 trained, 0 frozen"
does 4 verify --model script.pt --image-size 33x29 --num-spatial-parts 4 --split-size 1 --batch-size 2
does 5 train --model script.pt --image-size 24 "${training[@]}" "${tiles[@]}" --checkpoint-dir run5
rm script.pt
does 1 evaluate --checkpoint run5 --num-images 6
does 1 export --checkpoint run5 --to pt --out residual.pt
refuses "it holds weights (what torch.save writes of a state_dict) and no operators; give the model itself, and this file as its weights (--weights)" \
  import residual.pt --image-size 24
if "$python" -c 'import torch' 2>/dev/null; then
  what="strict loading of TorchScript's weights in Python"
  PYTHONPATH=$tests/data/import "$python" - >"$output" 2>&1 <<'END' || complain "the state_dict does not fit"
import nets, torch
print(nets.Residual().load_state_dict(torch.load("residual.pt"), strict=True))
END
fi

# --- A run can be repeated from its folder ---

does 1 train --model copy.graph "${training[@]}" "${tuned[@]}" --run-dir log1
does 1 --config log1/run.ini train --run-dir log2
losses() { grep -o '"loss":[^,]*' "$1/metrics.jsonl"; }
cmp <(losses log1) <(losses log2) || complain "run.ini does not repeat the run"

verdict
