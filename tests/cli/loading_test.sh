#!/usr/bin/env bash
# The images of a run: the same for every layout, with augmentation and dropout; files that are broken.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

log=$scratch/log
small=(--resnet-version 1 --depth 8 --num-classes 10 --global-pool-head)

# train RANKS ARGUMENT...
train() {
  local ranks=$1
  shift
  rm -f "$log"
  run 120 "$ranks" "$MPI4DL" train "${small[@]}" --json-log "$log" "$@"
}

loss_of_step() { sed -n "$1s/.*\"loss\":\([^,]*\),.*/\1/p" "$log"; }
apart() { python3 -c "import sys; sys.exit(not abs($1 - $2) $3)"; }

# The loss of step 20 in every kind of layout. Micro-batches have two images everywhere, because batch norm
# sees one micro-batch at a time.
same_loss_everywhere() {
  local reference="" layout loss
  local steps=(--image-size 32 --dtype float64 --num-images 40 --num-epochs 2 --lr 0.01 --seed 3)
  local random=(--augment "hflip,vflip,turn,jitter=0.3,crop=3" --dropout 0.3)
  for layout in "1 --batch-size 4 --parts 2" \
    "5 --num-spatial-parts 4 --batch-size 4 --parts 2" \
    "4 --split-size 4 --batch-size 4 --parts 2 --num-workers 2" \
    "3 --gems --split-size 3 --batch-size 2 --times 2" \
    "2 --batch-size 2 --num-workers 1 --on-bad-image skip"; do
    # shellcheck disable=SC2086 # several flags
    train $layout "${steps[@]}" "${random[@]}"
    expect_exit 0
    loss=$(loss_of_step 20)
    echo "loss of step 20: $loss with $layout"
    reference=${reference:-$loss}
    apart "$loss" "$reference" "< 1e-8" || complain "the loss of step 20 is $loss, on one rank $reference"
  done
  # Each of the two has its part in it.
  for random in "--dropout 0.3" "--augment hflip,vflip,turn,jitter=0.3,crop=3"; do
    # shellcheck disable=SC2086 # several flags
    train 1 --batch-size 4 --parts 2 "${steps[@]}" $random
    expect_exit 0
    apart "$(loss_of_step 20)" "$reference" "> 1e-4" || complain "as if nothing had been left out"
  done
}

# Ten thin digits for training and ten for testing, as in MNIST.
make_digits() {
  mkdir "$scratch/mnist"
  python3 - "$scratch/mnist" <<'PYTHON'
import struct, sys
for part in "train", "t10k":
    with open(f"{sys.argv[1]}/{part}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">4I", 0x803, 10, 28, 28))
        for digit in range(10):
            f.write(bytes(25 * digit if row == 14 else 0 for row in range(28) for _ in range(28)))
    with open(f"{sys.argv[1]}/{part}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">2I", 0x801, 10) + bytes(range(10)))
PYTHON
}

make_images() {
  run 120 2 "$MPI4DL" data make-megapixel-mnist --mnist "$scratch/mnist" --out "$scratch/mega" \
    --size 96 --noise 1 --count 20 --val-count 10
  expect_exit 0
  expect_text "20 images for training and 10 for validation, each 96x96"
  [ "$(find "$scratch/mega" -name '*.tif' | wc -l)" = 30 ] || complain "not 30 images"
  run 120 2 "$MPI4DL" data make-megapixel-mnist --mnist "$scratch/mnist" --out "$scratch/mega"
  expect_exit 2
  expect_one_sentence "is there already and not an empty folder"
  run 120 2 "$MPI4DL" data make-megapixel-mnist --mnist "$scratch" --out "$scratch/none"
  expect_exit 2
  expect_one_sentence "-images-idx3-ubyte.gz in"  # of the part that the first rank to look has asked for
  run 120 2 "$MPI4DL" data make-megapixel-mnist --mnist "$scratch/mnist" --out "$scratch/full" --size 60
  expect_exit 2
  expect_one_sentence "a canvas of 60x60 has no room for 5 digits and 50 patterns"
}

# An image of which only the beginning is there.
broken_images() {
  local bad=$scratch/mega/train/3/00013.tif layout other losses=()
  local files=(--app medical --datapath "$scratch/mega" --level 1 --image-size 48 --dtype float64)
  truncate --size 100 "$bad"
  train 5 "${files[@]}" --num-spatial-parts 4 --batch-size 4 --num-workers 2
  expect_exit 1
  expect_one_sentence "cannot read $bad"
  for layout in "5 --num-spatial-parts 4 --batch-size 4" "2 --split-size 2 --batch-size 4 --num-workers 2" \
    "2 --batch-size 2 --batch-norm replicas"; do
    # shellcheck disable=SC2086 # several flags
    train $layout "${files[@]}" --on-bad-image skip
    expect_exit 0
    expect_one_sentence "left out: cannot read $bad"
    ! grep -q WARNING "$output" || complain "words of libtorch"
    losses+=("$(loss_of_step 5)")
  done
  for other in 1 2; do
    apart "${losses[0]}" "${losses[$other]}" "< 1e-9" ||
      complain "layouts leave out different images: losses ${losses[*]}"
  done
  # A run that goes on knows what has been left out.
  train 1 "${files[@]}" --batch-size 4 --on-bad-image skip --num-epochs 2
  expect_exit 0
  local whole kept=(--batch-size 4 --on-bad-image skip --checkpoint-dir "$scratch/kept" --resume auto)
  whole=$(loss_of_step 10)
  train 1 "${files[@]}" "${kept[@]}"
  expect_exit 0
  train 2 "${files[@]}" "${kept[@]}" --split-size 2 --num-epochs 2
  expect_exit 0
  expect_text "left out: 1 of 20 images for training"
  apart "$(loss_of_step 5)" "$whole" "< 1e-9" || complain "another loss than $whole at the end"
}

complains() {
  local message=$1
  shift
  train 2 "$@"
  expect_exit 2
  expect_one_sentence "$message"
}

same_loss_everywhere
make_digits
make_images
broken_images
complains "augmentation turn needs square images, not 32x48; leave turn out or change the image size (--image-size, --augment)" --image-size 32x48 --augment turn
complains "'shear' is an unknown augmentation; use some of hflip,vflip" --augment hflip,shear
complains "--on-bad-image: ignore not in {fail,skip}" --on-bad-image ignore
complains "--dropout 1 leaves nothing to learn from" --dropout 1
verdict
