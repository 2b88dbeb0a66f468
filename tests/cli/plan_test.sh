#!/usr/bin/env bash
# `mpi4dl plan` says what a run needs, whether that fits, and what would make it fit.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

small=(--model resnet --resnet-version 1 --depth 20 --image-size 128)

# value NAME [FILE]: of the outermost object of a JSON file.
value() { sed -n "s/^  \"$1\": \([^,]*\),\{0,1\}$/\1/p" "${2:-$result}"; }

# plans CODE WORDS ARGUMENT...
plans() {
  local code=$1 words=$2
  shift 2
  what="plan $*"
  rm -f "$result"
  timeout --kill-after=5 60 "$MPI4DL" plan --json "$result" "$@" >"$output" 2>&1 </dev/null
  status=$?
  expect_exit "$code"
  expect_text "$words"
}

# The answer.
plans 0 "fits into 32 GiB a rank: yes" "${small[@]}" --memory 32G
[ "$(value fits)" = true ] || complain "the file does not say that it fits"
plans 1 "fits into 210 MiB a rank: no" "${small[@]}" --batch-size 2 --memory 210M
[ "$(value fits)" = false ] || complain "the file says that it fits"
# Each of the remedies does what it says.
mapfile -t remedies < <(sed -n '/cheapest first/,$ { s/^  \(--[^ ].*[^ ]\)  *[0-9.]* MiB a rank .*/\1/p }' "$output")
[ "${remedies[0]}" = --recompute ] || complain "the first remedy is '${remedies[0]}'"
[ "${#remedies[@]}" = 4 ] || complain "${#remedies[@]} remedies instead of 4"
for remedy in "${remedies[@]}"; do
  # shellcheck disable=SC2086 # several flags
  plans 0 "fits into 210 MiB a rank: yes" "${small[@]}" --batch-size 2 --memory 210M $remedy
done
plans 1 "--parts 4 " "${small[@]}" --batch-size 8 --recompute --dtype bfloat16 --memory 200M
plans 1 "17 ranks instead of 5" "${small[@]}" --batch-size 8 --num-spatial-parts 4 --memory 210M
plans 1 "--stages 4x4 " "${small[@]}" --batch-size 8 --stages 2x2 --memory 210M
plans 1 "no change that was tried would make it fit" "${small[@]}" --memory 1M
# More tiles do not help a rank behind them.
wide=(--model resnet --depth 11 --global-pool-head --image-size 4096 --batch-size 1 --memory 3G)
plans 1 "--num-spatial-parts 16 --split-size 1 " "${wide[@]}"
plans 0 "fits into 3 GiB a rank: yes" "${wide[@]}" --num-spatial-parts 16 --split-size 1
plans 1 "--split-size 1 " "${wide[@]}" --num-spatial-parts 16
expect_text "all layers on the tiles, 16 ranks instead of 17"
# Where there are no tiles, none are suggested.
plans 1 "no change that was tried would make it fit" "${small[@]}" --parallelism layer --memory 1M
grep -q spatial-parts "$output" && complain "a benchmark without tiles cannot have some"

# Sizes.
limit() {
  plans "$1" "$2" "${small[@]}" --batch-size 1 --memory "$3"
  [ "$(value limit_per_rank)" = "$4" ] || complain "$3 is $(value limit_per_rank), not $4"
}
limit 0 "fits into 32 GiB" 32GiB $((32 << 30))
limit 0 "fits into 37.3 GiB" 40GB 40000000000
limit 0 "fits into 1.5 TiB" 1.5t $((3 << 39))
limit 1 "fits into 4 KiB" 4096 4096
for wrong in nonsense 0 -5 32Q 1e9 G; do
  plans 2 "--memory $wrong is not a size of memory; use a number with a unit" --memory "$wrong"
done

# A schedule of 1025 ranks has two rows.
plans 0 "ranks 0-1023 | F0   .    .    .    B0   B0" --image-size 128 --num-spatial-parts 1024 \
  --batch-size 1
expect_text "rank 1024    | .    F0   B0   B0   .    ."
[ "$(wc -l <"$output")" -lt 20 ] || complain "too many lines"

# needs RANKS IMAGES ARGUMENT...: leaves in `planned` and `resident` what a rank of a step with so
# many images needs, and what it had.
needs() {
  local ranks=$1 images=$2 folder
  shift 2
  set -- "${small[@]}" --batch-size "$images" "$@"
  plans 0 "memory of the rank" "$@"
  planned=$(value bytes_per_rank)
  folder=$(mktemp -d -p "$scratch")
  run 120 "$ranks" "$MPI4DL" train --num-images "$images" --app random --run-dir "$folder" "$@"
  expect_exit 0
  resident=$(value resident_bytes "$folder/summary.json")
}
# agrees RANKS ARGUMENT...: with 16 images instead of 4, a rank needs as much more as was planned.
# The rest is mostly libtorch, which is not the same everywhere. Resident memory differs by up to
# 6 MiB from run to run, two readings of it by up to 12 of the 90 MiB that are planned.
agrees() {
  local ranks=$1 first_planned first_resident
  shift
  needs "$ranks" 4 "$@"
  first_planned=$planned first_resident=$resident
  needs "$ranks" 16 "$@"
  awk "BEGIN { ratio = ($resident - $first_resident) / ($planned - $first_planned)
               exit !(ratio > 0.85 && ratio < 1.2 && $resident < 1.3 * $planned) }" ||
    complain "planned $first_planned, $planned bytes, resident $first_resident, $resident"
}
if [ -z "${ASAN_OPTIONS:-}" ]; then # sanitizers need memory of their own
  agrees 1
  agrees 4 --stages 2x2 --optimizer adam
  agrees 2 --split-size 2 --parts 4
fi

verdict
