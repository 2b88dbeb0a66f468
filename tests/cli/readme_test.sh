#!/usr/bin/env bash
# The commands of README.md, typed into one shell from the first to the last, all succeed; but for the
# scripts that install and build. Benchmarks show what they print.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

project=$(realpath "$(dirname "$0")/../..")
{
  echo 'set -e -x'
  awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$project/README.md" |
    grep -v '^scripts/' | sed "s|^source scripts/|source $project/scripts/|"
} >"$scratch/commands.sh"
[ "$(grep -c mpi4dl "$scratch/commands.sh")" -ge 5 ] || complain "README.md has hardly any commands"

mkdir "$scratch/folder"
cd "$scratch/folder" || exit 1
what="README.md"
PATH=$(dirname "$MPI4DL"):$PATH timeout --kill-after=5 300 bash ../commands.sh >"$output" 2>&1 </dev/null
status=$?
expect_exit 0

: >"$output"
for readme in "$project"/benchmarks/*/README.md "$project"/benchmarks/*/*/README.md; do
  what=$readme
  grep -q -e '^images per sec: mean' -e '^ *ratio to bare MPI' "$readme" || complain "no result of a benchmark"
done
verdict
