#!/usr/bin/env bash
# Training on image files, and what `mpi4dl data inspect` says about them.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

data=$scratch/data

# Two classes of 40x48 pixels that differ in colour, and CIFAR-10 of two colours.
python3 - "$data" <<'END'
import os, random, struct, sys, zlib
root = sys.argv[1]
random.seed(1)

def png(height, width, label):
    rows = b"".join(b"\0" + bytes(min(255, (120 if c == 2 * label else 20) + random.randrange(100))
                                  for x in range(width) for c in range(3)) for y in range(height))
    chunk = lambda name, body: struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

for place in range(40):
    name = f"{root}/files/{'ab'[place % 2]}/{place}.png"
    os.makedirs(os.path.dirname(name), exist_ok=True)
    open(name, "wb").write(png(40, 48, place % 2))
open(f"{root}/list.csv", "w").write("path,label,split\n" + "".join(
    f"files/{'ab'[i % 2]}/{i}.png,{i % 2},{'val' if i >= 32 else 'train'}\n" for i in range(40)))
os.makedirs(f"{root}/cifar")
for name in ("data_batch_1", "test_batch"):
    with open(f"{root}/cifar/{name}.bin", "wb") as out:
        for place in range(40):
            label = place % 10
            out.write(bytes([label]) + bytes(25 * label + random.randrange(20) for _ in range(3072)))
END

loss_of() { grep -o 'epoch .*  loss *[0-9.]*  accuracy' "$output" | tail -1; }

# trains RANKS ARGUMENT...: a run of files, with what it says about its last epoch in `last`.
trains() {
  local ranks=$1
  shift
  run 100 "$ranks" "$MPI4DL" train --model resnet --resnet-version 1 --depth 8 --lr 0.02 --dtype float64 "$@"
  expect_exit 0
  last=$(loss_of)
  [ -n "$last" ] || complain "no loss"
}

# Every layout sees the same pixels.
files=(--app medical --num-classes 2 --num-epochs 2 --batch-size 8 --image-size 32x64 --fit crop-pad)
trains 1 "${files[@]}" --datapath "$data/files" --val-fraction 0.2
alone=$last
trains 3 "${files[@]}" --datapath "$data/files" --val-fraction 0.2 --num-spatial-parts 2 --split-size 2
[ "$alone" = "$last" ] || complain "one rank: '$alone', three ranks: '$last'"
expect_text "images 32x64 from medical"
trains 2 "${files[@]}" --datapath "$data/list.csv" --split-size 2
trains 2 --app 2 --datapath "$data/cifar" --num-epochs 2 --batch-size 10 --image-size 40 --fit resize \
  --global-pool-head --split-size 2

# inspects CODE ARGUMENT...
inspects() {
  local code=$1
  shift
  run 30 1 "$MPI4DL" data inspect "$@"
  expect_exit "$code"
}
inspects 0 "$data/files/a/0.png" --num-spatial-parts 4
expect_text "0.png: PNG, 40x48 pixels of 3 x 8 bits, read from the top"
expect_text "tile 3: rows 20 to 39, columns 24 to 47, 0.0 MiB as float32"
inspects 0 "$data/files" --image-size 64 --fit pad --num-spatial-parts 2 --slice-method horizontal --decode
expect_text "class 1 'b': 20"
expect_text "sizes from 40x48 to 40x48 pixels"
expect_text "an image of 64x64 pixels in 2x1 tiles"
inspects 0 "$data/list.csv"
expect_text "class 0: 16 for training, 4 for validation"
inspects 0 "$data/cifar" --num-spatial-parts 4
expect_text "CIFAR-10, 40 images for training and 40 for validation"
head -c 300 "$data/files/a/0.png" >"$data/files/a/cut.png"
inspects 0 "$data/files"
inspects 1 "$data/files" --decode
expect_text "cannot read $data/files/a/cut.png"
expect_text "1 of 41 images cannot be used"
inspects 2 "$data/gone"
expect_one_sentence "there is no file or folder"

verdict
