#!/usr/bin/env bash
# Images that are not what they should be, on two ranks: one sentence from one of them, and exit code
# 2 where the request cannot be met, 1 where a file turns out to be bad on the way.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

data=$scratch/data

# Folders and files with one mistake each; images of 32x32 pixels, but for `small`, which have 20x20.
python3 - "$data" <<'END'
import os, struct, sys, zlib
root = sys.argv[1]

def png(side):
    rows = b"".join(b"\0" + bytes((x * y + c) % 256 for x in range(side) for c in range(3)) for y in range(side))
    chunk = lambda name, body: struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

def write(name, content):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(content if isinstance(content, bytes) else content.encode())

def classes(name, side=32, bad=None):
    for place in range(8):
        write(f"{name}/{'ab'[place % 2]}/{place}.png", png(side))
    if bad:
        write(f"{name}/a/{bad[0]}", bad[1])

classes("good")
classes("small", side=20)
os.makedirs(f"{root}/empty")
classes("empty_class"); os.makedirs(f"{root}/empty_class/c")
write("text_only/a/readme.txt", "no images")
write("flat/1.png", png(32))
classes("three"); write("three/c/1.png", png(32))
classes("split/train"); classes("split/val")
classes("other_val/train"); write("other_val/val/zebra/1.png", png(32))
for name in ("1.jpg", "2.jpg", "3.jpg", "4.jpg"):
    write(f"corrupt_jpeg/{'ab'['13'.count(name[0])]}/{name}", b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + b"\x55" * 400)
for place in range(4):
    write(f"cut_png/{'ab'[place % 2]}/{place}.png", png(32)[:-90])
    write(f"text_png/{'ab'[place % 2]}/{place}.png", "these are not pixels")
    write(f"no_bytes/{'ab'[place % 2]}/{place}.png", "")
rows = "".join(f"good/{'ab'[i % 2]}/{i}.png,{i % 2}\n" for i in range(8))
write("good.csv", "path,label\n" + rows)
write("header.csv", "file;class\n" + rows)
write("nothing.csv", "")
write("headline.csv", "path,label\n")
write("word.csv", "path,label\ngood/a/0.png,tumour\n")
write("minus.csv", "path,label\ngood/a/0.png,-1\n")
write("range.csv", "path,label\n" + rows + "good/a/0.png,2\n")
write("parts.csv", "path,label,split\ngood/a/0.png,0,test\n")
write("fields.csv", "path,label\ngood/a/0.png\n")
write("quote.csv", "path,label\n\"good/a/0.png,0\n")
write("missing.csv", "path,label\n" + "".join(f"gone/{i}.png,{i % 2}\n" for i in range(8)))
record = lambda label: bytes([label]) + bytes(3072)
for name in ("cifar", "no_test", "long_file", "label"):
    write(f"{name}/data_batch_1.bin", b"".join(record(i % 10) for i in range(8)))
    write(f"{name}/test_batch.bin", record(1) * 4)
os.remove(f"{root}/no_test/test_batch.bin")
write("long_file/data_batch_2.bin", record(1) + b"more")
write("label/data_batch_1.bin", record(77) * 8)
END

# refuses CODE WORDS ARGUMENT...: two stages on two ranks, two classes.
refuses() {
  local code=$1 words=$2
  shift 2
  run 60 2 "$MPI4DL" train --model resnet --resnet-version 1 --depth 8 --split-size 2 \
    --batch-size 2 "$@"
  expect_exit "$code"
  expect_one_sentence "$words"
}
medical() {
  local code=$1 words=$2 path=$3
  shift 3
  refuses "$code" "$words" --app medical --num-classes 2 --datapath "$data/$path" "$@"
}
cifar() {
  local code=$1 words=$2 path=$3
  shift 3
  refuses "$code" "$words" --app cifar --datapath "$data/$path" "$@"
}

medical 2 "there is no folder, CSV file or image" gone
medical 2 "has neither a folder of images for each class nor images" empty
medical 2 "empty_class/c of a class has no images" empty_class
medical 2 "text_only/a of a class has no images" text_only
medical 2 "nothing says which class" flat
medical 2 "has 3 classes (a, b, c), but the number of classes is 2; use 3 (--num-classes)" three
medical 2 "has a class 'zebra' that" other_val
medical 2 "already says what is for validation" split --val-fraction 0.5
medical 2 "use less than 1" good --val-fraction 1
medical 2 "--val-fraction: -0.5 is not a number of at least 0" good --val-fraction -0.5
medical 2 "fewer than the effective batch of 2" good --val-fraction 0.9
medical 2 "the first line of $data/header.csv is 'file;class'" header.csv
medical 2 "is empty; its first line must be path,label" nothing.csv
medical 2 "names no images" headline.csv
medical 2 "has 1 classes (tumour), but the number of classes is 2; use 1 (--num-classes)" word.csv
medical 2 "line 2: the label '-1' is not a number of a class" minus.csv
medical 2 "has label 2, but the number of classes is 2, so the largest is 1 (--num-classes)" range.csv
medical 2 "split is 'test'; use train or val" parts.csv
medical 2 "line 2: 1 fields instead of 2" fields.csv
medical 2 "a quote is never closed" quote.csv
medical 2 "--level 1 and --mpp 0.5 exclude each other" good --level 1 --mpp 0.5
medical 2 "--mpp 0.5 and --fit resize exclude each other" good --mpp 0.5 --fit resize
medical 2 "--fit: stretch not in" good --fit stretch
medical 2 "--num-images 5 requires --app synthetic or random" good --num-images 5
medical 1 "there is no such file" missing.csv
medical 1 "cannot read $data/corrupt_jpeg" corrupt_jpeg
medical 1 "cannot read $data/cut_png" cut_png
medical 1 "it is not an image that libvips knows" text_png
medical 1 "cannot read $data/no_bytes" no_bytes
medical 1 "it has 1 level, from 0 to 0" good --level 3
medical 1 "nothing in it says how large a pixel is" good --mpp 0.5
medical 1 "has 20x20 pixels, not the image size of 32x32; use crop, pad, crop-pad or resize" small
medical 1 "crop needs larger images; use crop-pad or resize" small --fit crop
medical 1 "pad needs smaller images; use crop-pad or resize" good --fit pad --image-size 16 --global-pool-head
cifar 2 "there is no folder" gone
cifar 2 "has no files data_batch_*.bin" good
cifar 2 "test_batch.bin: No such file" no_test
cifar 2 "has 3077 bytes, which is no multiple of the 3073" long_file
cifar 2 "CIFAR-10 has 10 classes, but --num-classes is 7" cifar --num-classes 7
cifar 2 "an image of CIFAR-10 has 32x32 pixels, not the image size of 64x64" cifar --image-size 64
cifar 2 "--level and --mpp require --app medical" cifar --level 1
cifar 2 "CIFAR-10 has test_batch.bin for validation" cifar --val-fraction 0.1
cifar 1 "its label is 77, not below 10" label
refuses 2 "--datapath x requires --app medical or cifar" --app synthetic --datapath x
refuses 2 "there is no folder, CSV file or image x" --datapath x
refuses 2 "--fit pad requires --app medical or cifar" --fit pad

verdict
