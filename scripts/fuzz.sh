#!/usr/bin/env bash
# fuzz.sh [SECONDS] [TARGET...]: gives readers of files bytes that nobody would write, for so many seconds each (60), and ends
# with exit code 1 at the first that makes one crash, hang, take much memory or compute something undefined. The bytes are
# then in build/fuzz/findings; `build/fuzz/bin/fuzz_TARGET FILE` runs them again. Targets: exported_program, model_json,
# graph_text, state_dict, safetensors; all of them if none is named. What a run found new ways with is kept in
# build/fuzz/corpus, and the next one begins there.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=${1:-60}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(exported_program model_json graph_text state_dict safetensors)
version=19
tree=build/fuzz

scripts/setup.sh "clang-$version" "libclang-rt-$version-dev" "libomp-$version-dev"
step "configure $tree" configure-fuzz cmake --preset debug -B "$tree" -D CMAKE_CXX_COMPILER="clang++-$version" \
  -D MPI4DL_FUZZ=ON -D MPI4DL_SANITIZE=ON -D MPI4DL_TESTS=OFF -D MPI4DL_WERROR=OFF
step "build $tree" build-fuzz cmake --build "$tree" --target fuzz

if [ ! -e "$tree/seeds/words" ]; then
  mkdir -p "$tree/files" "$tree/seeds/graph_text"
  tar -xJf tests/data/import/files.tar.xz -C "$tree/files"
  step "seeds" seeds-fuzz "$tree/bin/fuzz_graph_seeds" "$tree/seeds/graph_text" "$tree"/files/*.pt2
  python3 tests/fuzz/seeds.py "$tree/files" "$tree/seeds"
fi
mkdir -p "$tree/findings"

failed=0
for target in "${targets[@]}"; do
  corpus=$tree/corpus/$target
  mkdir -p "$corpus"
  log=build/fuzz-$target.log
  echo "==> $target, $seconds s"
  UBSAN_OPTIONS=print_stacktrace=1 \
    "$tree/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1500 -malloc_limit_mb=1000 -max_len=400000 \
    -len_control=0 -dict="$tree/seeds/words" -artifact_prefix="$tree/findings/$target-" -print_final_stats=1 \
    "$corpus" "$tree/seeds/$target" >"$log" 2>&1 </dev/null || failed=1
  grep -E "^(==[0-9]+==ERROR|SUMMARY|.*runtime error|Done )|stat::number_of_executed|Test unit written" "$log" || true
  { grep -oE "cov: [0-9]+ ft: [0-9]+" "$log" || true; } | tail -n 1
done
[ "$failed" -eq 0 ]
