#!/usr/bin/env bash
# bench_halo_test.sh RANKS: `mpi4dl bench halo --validate` finds every pixel where it belongs.
. "$(dirname "$0")/../support/program.sh"

for method in square vertical horizontal; do
  for size in 1024 1000 1023; do
    expect_right_halo "$1" --image-size $size --in-channels 3 --halo-len 3 --slice-method $method
  done
  # Tiles of 9 ranks are smaller than the halo, which then comes from neighbours' neighbours.
  expect_right_halo "$1" --image-size 32 --halo-len 7 --slice-method $method \
    --batch-size 2 --in-channels 2 --out-channels 3 --compute --backward
done

verdict
