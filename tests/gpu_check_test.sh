#!/usr/bin/env bash
# scripts/gpu-check.sh does its work where the device is the simulated one, and fails where there is none.
# shellcheck source-path=SCRIPTDIR source=support/program.sh
. "$(dirname "$0")/support/program.sh"

# check DEVICE: what the script does in little; its report is in $result.
check() {
  what="gpu-check.sh on $1"
  DEVICE=$1 TREE=$(dirname "$(dirname "$MPI4DL_SIMULATED")") PROGRAM=mpi4dl-simulated SIZE=24 QUICK=1 \
    timeout --kill-after=5 250 bash "$(dirname "$0")/../scripts/gpu-check.sh" "$result" >"$output" 2>&1 </dev/null
  status=$?
}

check privateuseone
expect_exit 0
expect_text "==> 0 of these failed, 2 are not available"
expect_text "equal to one rank" "$result"
expect_text "[  PASSED  ]" "$result"
check privateuseone:7
expect_exit 1
expect_text "there is no device privateuseone:7" "$result"
verdict
