#!/usr/bin/env bash
# lint.sh [FILE...]: clang-format and clang-tidy over src, tests and bench, or over these files only
# (paths as seen from the project's folder). Nearly all of the time goes into libtorch's headers, so
# files of a folder are checked a few at a time. Files that are named are checked one by one,
# which also finds a missing #include.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# One version for everybody. Debian 12 and 13 have it; older ones do not know std::source_location.
version=19
files=("$@")
if [ $# -eq 0 ]; then
  folder=build/lint-groups
  grouping=ON
  mapfile -t files < <(find src tests bench -name '*.[ch]pp' | sort)
else
  folder=build/lint
  grouping=OFF
fi

scripts/setup.sh "clang-format-$version" "clang-tidy-$version" "libomp-$version-dev"

# A folder of its own where nothing is built: the precompiled headers of gcc mean nothing to clang.
step "configure $folder" configure-lint \
  cmake --preset release -B "$folder" -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
  -D MPI4DL_UNITY="$grouping"
# In C++20 clang rejects the headers of libtorch 1.13 unless it sees the definition of IValue first.
# What is an error says .clang-tidy, which lets headers of others use what is deprecated.
sed -Ei '/torch/ s|"command": "[^ ]* |&-include ATen/core/ivalue.h |; s/ -(Werror|Wno-(restrict|array-bounds|stringop-overflow|subobject-linkage))//g' \
  "$folder/compile_commands.json"

failed=0

echo "==> clang-format"
"clang-format-$version" --dry-run -Werror "${files[@]}" || failed=1

echo "==> clang-tidy"
# Without names: all that is in the folder, where a group includes source files, as groups do.
"run-clang-tidy-$version" -quiet -p "$folder" -checks=-bugprone-suspicious-include "${@/#/$PWD/}" 2>&1 |
  { grep --line-buffered -Ev '^$|^[0-9]+ warnings generated' || true; } || failed=1

exit "$failed"
