# shellcheck shell=bash
# Runs programs as a user does, under mpirun, and looks at what they say and how they end.
# Given by CTest: MPI4DL (the program), MPIRUN (the launcher up to the number of ranks).
set -u

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
output=$scratch/output
result=$scratch/result.json
failures=0

# run SECONDS RANKS PROGRAM [ARGUMENT...]: leaves its exit code in `status`, its words in $output.
run() {
  local seconds=$1 ranks=$2
  shift 2
  what="$ranks ranks: $*"
  # shellcheck disable=SC2086 # MPIRUN holds a command with its flags
  timeout --kill-after=5 "$seconds" $MPIRUN "$ranks" "$@" >"$output" 2>&1 </dev/null
  status=$?
}

complain() {
  echo "FAILED: $what"
  echo "  $1"
  sed 's/^/  | /' "$output"
  failures=$((failures + 1))
}

expect_exit() {
  if [ "$status" = 124 ]; then
    complain "it did not end in time"
  elif [ "$status" != "$1" ]; then
    complain "exit code $status instead of $1"
  fi
}

# expect_text WORDS [FILE]: in the output unless a file is given.
expect_text() {
  grep -qF -e "$1" "${2:-$output}" || complain "missing: $1"
}

# Whatever the number of ranks, the user reads one sentence, and it contains the given words.
expect_one_sentence() {
  local sentences
  sentences=$(grep -c '^mpi4dl: ' "$output")
  [ "$sentences" = 1 ] || complain "$sentences sentences instead of 1"
  expect_text "$1"
}

# expect_right_halo RANKS ARGUMENT...: a short benchmark finds no wrong pixel; see $result.
expect_right_halo() {
  local ranks=$1
  shift
  rm -f "$result"
  run 60 "$ranks" "$MPI4DL" bench halo --num-spatial-parts "$ranks" --warmup 1 --iterations 3 \
    --validate --json "$result" "$@"
  expect_exit 0
  expect_text '"wrong": 0,' "$result"
}

# The last line of a test.
verdict() {
  [ "$failures" = 0 ] && echo "passed" && exit 0
  echo "$failures failures"
  exit 1
}
