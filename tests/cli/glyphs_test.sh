#!/usr/bin/env bash
# Images that the program draws, patches cut out of them, and training on both.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

small=(--size 96 --num-classes 3 --most 3 --others 1 --distractors 2 --count 12 --val-count 6)

# The same images on any number of ranks.
run 60 2 "$MPI4DL" data make-glyphs --out "$scratch/glyphs" "${small[@]}"
expect_exit 0
expect_text "12 images for training and 6 for validation, each 96x96, in $scratch/glyphs"
[ "$(find "$scratch/glyphs/train/checks" -name '*.tif' | wc -l)" = 4 ] || complain "not 4 images of a class"
run 60 1 "$MPI4DL" data make-glyphs --out "$scratch/again" "${small[@]}"
expect_exit 0
diff -r "$scratch/glyphs" "$scratch/again" >"$output" || complain "other images on one rank"
run 60 1 "$MPI4DL" data make-glyphs --out "$scratch/other" "${small[@]}" --seed 2
expect_exit 0
cmp "$scratch/glyphs/val/dots/00002.tif" "$scratch/other/val/dots/00002.tif" >"$output" 2>&1
[ $? = 1 ] || complain "not other images"

# refuses WORDS ARGUMENT...: before anything is written.
refuses() {
  local words=$1
  shift
  run 60 2 "$MPI4DL" data "$@"
  expect_exit 2
  expect_one_sentence "$words"
}
refuses "is there already and not an empty folder (--out)" make-glyphs --out "$scratch/glyphs" "${small[@]}"
refuses "3 of the most frequent glyph must be more than 3 of the others, or none occurs most often (--most, --others)" make-glyphs --out "$scratch/none" --most 3 --others 3
refuses "at least the 4 of --num-classes" make-glyphs --out "$scratch/none" --size 200 --val-count 3
[ -e "$scratch/none" ] && complain "a folder was made"

# Patches: names say from which image, folders which class; they are the pixels of the image.
run 60 2 "$MPI4DL" data cut-patches --datapath "$scratch/glyphs" --out "$scratch/tiles" --patch-size 48 --cover
expect_exit 0
expect_text "72 patches of 48x48 from 18 images"
[ -f "$scratch/tiles/val/dots/00002-00003.png" ] || complain "the last patch of an image is missing"
run 60 2 "$MPI4DL" data cut-patches --datapath "$scratch/glyphs" --out "$scratch/patches" --patch-size 48 --per-image 3
expect_exit 0
expect_text "54 patches of 48x48 from 18 images"
refuses "fewer than a patch of 256x256" cut-patches --datapath "$scratch/glyphs" --out "$scratch/large"
refuses "is there already and not an empty folder" cut-patches --datapath "$scratch/glyphs" \
  --out "$scratch/tiles" --patch-size 48
mkdir -p "$scratch/twins/a/x" "$scratch/twins/a/y"
touch "$scratch/twins/a/x/1.png" "$scratch/twins/a/y/1.png"
refuses "two images of a class have the name of" cut-patches --datapath "$scratch/twins" --out "$scratch/twin"

# Covering patches put together again are the image: training on one patch that is a whole image
# gives the loss of training on the images.
run 60 2 "$MPI4DL" data cut-patches --datapath "$scratch/glyphs" --out "$scratch/whole" --patch-size 96 --cover
expect_exit 0
loss() {
  run 60 1 "$MPI4DL" train --model resnet --resnet-version 1 --depth 8 --global-pool-head --num-classes 3 \
    --app medical --batch-size 4 --dtype float64 "$@"
  expect_exit 0
  grep -o '^epoch .* accuracy [0-9.]* %' "$output"
}
images=$(loss --datapath "$scratch/glyphs" --image-size 96)
whole=$(loss --datapath "$scratch/whole" --image-size 96)
[ -n "$images" ] && [ "$images" = "$whole" ] || complain "images: '$images', patches as large: '$whole'"
loss --datapath "$scratch/patches" --image-size 48 >/dev/null

verdict
