#!/usr/bin/env bash
# When one rank fails, sleeps or dies, the whole job ends within seconds and says why.
. "$(dirname "$0")/../support/program.sh"

# Each rank leaves a file named after its process before it becomes the program.
ranks=$scratch/ranks
mkdir "$ranks"
# shellcheck disable=SC2016 # the rank's shell expands this, not ours
traced=(bash -c 'touch "$0/$$"; exec "$@"' "$ranks")

# A killed process that nobody has asked about yet is dead all the same.
alive() { grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }

# The launcher may return a moment before the last rank is gone.
expect_all_gone() {
  local file
  for file in "$ranks"/*; do
    for _ in {1..20}; do
      alive "${file##*/}" || break
      sleep 0.1
    done
    alive "${file##*/}" && complain "process ${file##*/} is still there"
    rm "$file"
  done
}

run 15 2 "${traced[@]}" "$FAILING_RANK" sleep
expect_exit 1
expect_one_sentence "rank 0 of 2 failed while waiting for a tile: \
rank 0 has waited 2 s for rank 1 (receive of 4096 bytes)"
expect_all_gone

run 20 4 "${traced[@]}" "$FAILING_RANK" throw
expect_exit 1
expect_one_sentence "rank 1 of 4 failed while reading image 7: the file is gone"
expect_all_gone

# Lets the launcher go on two seconds after a rank has stopped it.
wake_launcher() {
  local rank launcher
  for _ in {1..200}; do
    sleep 0.1
    rank=$(find "$ranks" -type f -printf '%f\n' -quit)
    launcher=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/${rank:-none}/status" 2>/dev/null)
    grep -qs '^State:[[:space:]]*T' "/proc/${launcher:-none}/status" || continue
    sleep 2
    kill -CONT "$launcher"
    return
  done
}

# All fail at once and the launcher is slow to end them: still one speaks for all.
wake_launcher &
run 30 4 "${traced[@]}" "$FAILING_RANK" together
wait $!
expect_exit 1
expect_one_sentence "failed while reading image 7: the file is gone"
expect_all_gone

run 20 2 "${traced[@]}" "$MPI4DL" bench halo --iterations 1 --json "$scratch/no/such/folder"
expect_exit 1
expect_one_sentence "rank 0 of 2 failed while reporting the halo exchange: \
the result could not be written"
expect_all_gone

# A rank is killed in the middle of a long run.
run 60 4 "${traced[@]}" "$MPI4DL" bench halo --image-size 256 --iterations 1000000000 &
job=$!
what="4 ranks, one of them killed"
for _ in {1..100}; do
  [ "$(find "$ranks" -type f | wc -l)" = 4 ] && break
  sleep 0.1
done
sleep 3
victims=("$ranks"/*)
alive "${victims[0]##*/}" || complain "the run ended before a rank was killed"
kill -9 "${victims[0]##*/}"
killed=$SECONDS
wait "$job"
expect_all_gone
[ $((SECONDS - killed)) -le 10 ] || complain "the job took $((SECONDS - killed)) s to end"

verdict
