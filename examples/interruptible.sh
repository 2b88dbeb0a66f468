#!/usr/bin/env bash
# interruptible.sh mpirun -np 5 mpi4dl train ... --checkpoint-dir run1: Ctrl-C stops the run after its step and
# saves it, however long that takes; a second Ctrl-C ends it at once. (mpirun itself leaves its ranks one
# second.)
set -u

setsid "$@" & # away from the terminal's Ctrl-C
job=$!
asked=no
interrupt() {
  if [ "$asked" = no ]; then
    asked=yes
    kill -USR1 "$job"
  else
    kill -INT "$job"
  fi
}
trap interrupt INT

# A shell answers a signal while it waits for a job in the background; then it has to wait again.
while true; do
  wait "$job"
  code=$?
  kill -0 "$job" 2>/dev/null || exit "$code"
done
