#!/usr/bin/env bash
# scripts/gpu-check.sh does its work where the device is the simulated one, fails where there is none, and ends where it cannot
# be built.
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

# Every build is tried, and nothing after one that fails.
mkdir "$scratch/bin"
cat >"$scratch/bin/cmake" <<'END'
#!/bin/sh
case "$*" in *--build*) echo "the compiler is out of memory"; exit 3 ;; esac
END
chmod +x "$scratch/bin/cmake"
what="gpu-check.sh without a compiler"
PATH=$scratch/bin:$PATH timeout --kill-after=5 60 bash "$(dirname "$0")/../scripts/gpu-check.sh" "$result" >"$output" 2>&1 </dev/null
status=$?
expect_exit 1
expect_text "exit code 0 after" "$result"
expect_text "the compiler is out of memory" "$result"
expect_text "there is nothing to check, because it was not built" "$result"
if grep -q "what it stands on" "$result"; then complain "it went on"; fi
verdict
