#!/usr/bin/env bash
# Asking for something impossible is answered by one sentence from one rank, and exit code 2.
. "$(dirname "$0")/../support/program.sh"

# refuses WORDS ARGUMENT...: four ranks are asked for `bench halo ARGUMENT...`.
refuses() {
  local words=$1
  shift
  run 30 4 "$MPI4DL" bench halo "$@"
  expect_exit 2
  expect_one_sentence "$words"
}

refuses "3 spatial parts need one rank each, but there are 4; start with mpirun -np 3 (--num-spatial-parts)" --num-spatial-parts 3
refuses "an image of 1x1 pixels cannot be cut into 2x2 tiles" --image-size 1
refuses "an image of 8x3 pixels cannot be cut into 1x4 tiles" --slice-method 1x4 --image-size 8x3
refuses "unknown slice method 'diagonal'" --slice-method diagonal
refuses "slice method 3x3 makes 9 tiles, but 4 spatial parts" --slice-method 3x3
refuses "--halo-len" --halo-len -1
refuses "--image-size 12by is not a size" --image-size 12by
refuses "--dtype" --dtype int8
refuses "--frobnicate" --frobnicate

run 30 4 "$MPI4DL"
expect_exit 2
expect_one_sentence "mpi4dl needs a command"

verdict
