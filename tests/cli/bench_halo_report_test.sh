#!/usr/bin/env bash
# `mpi4dl bench halo` reports what it measured.
. "$(dirname "$0")/../support/program.sh"

# Two strips of 512 x 3 pixels and a corner of 3 x 3, of 3 channels of 4 bytes.
expect_right_halo 4 --image-size 1024 --in-channels 3 --halo-len 3
expect_text '"bytes_per_rank": 36972' "$result"
for key in wrong median_ms bytes_per_rank bare_mpi_ms ratio_to_bare_mpi; do
  expect_text "\"$key\": " "$result"
done

expect_right_halo 2 --image-size 7x16 --slice-method 2x1 --halo-len 0 --dtype float64 \
  --compute --backward --out-channels 2
expect_text '"bytes_per_rank": 0' "$result"
expect_text "weight gradients: 16 bytes on 2 ranks "
for key in adjoint_ms sequential_ms overlapped_ms reduction_ms reduction; do
  expect_text "\"$key\": " "$result"
done

# One rank needs no launcher, and computes with all cores unless it is told otherwise.
what="one rank without mpirun"
env -u OMP_NUM_THREADS "$MPI4DL" bench halo --validate >"$output" 2>&1 </dev/null
status=$?
expect_exit 0
expect_text ", $(env -u OMP_NUM_THREADS nproc) thread"

verdict
