# shellcheck shell=bash
# What the benchmarks share; sourced first. Builds, and leaves the caller in the project's folder.
# shellcheck source-path=SCRIPTDIR source=../scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

mpi4dl=build/release/bin/mpi4dl
figures=build/bench # every run leaves its figures here, as NAME.json
mkdir -p "$figures"

quick=no
for option in "$@"; do
  case $option in
    --quick) quick=yes ;;
    *) echo "usage: ${0##*/} [--quick]" >&2 && exit 2 ;;
  esac
done

# iterations MANY FEW: how often to measure, in full or with --quick.
iterations() { if [ "$quick" = yes ]; then echo "$2"; else echo "$1"; fi; }

# measure NAME RANKS ARGUMENT...: a run of `mpi4dl bench train`.
measure() {
  local name=$1 ranks=$2
  shift 2
  step "$name: mpirun -np $ranks mpi4dl bench train $*" "bench-$name" \
    mpirun -np "$ranks" "$mpi4dl" bench train --json "$figures/$name.json" "$@"
}

# measure_alone NAME ARGUMENT...: the same on one rank with all cores.
measure_alone() {
  local name=$1
  shift
  step "$name: mpi4dl bench train $*" "bench-$name" \
    "$mpi4dl" bench train --json "$figures/$name.json" "$@"
}

# figure NAME PYTHON: an expression about the figures `r` of that run.
figure() {
  python3 -c 'import json, sys; from statistics import median; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' \
    "$figures/$1.json" "$2"
}

# row WHAT MEASURED TARGET OK: a row of the table, kept for the end.
table=()
row() { table+=("$(printf '| %s | %s | %s | %s |' "$@")"); }

# within MEASURED OPERATOR BOUND: yes or NO.
within() { awk "BEGIN { print ($1 $2 $3) ? \"yes\" : \"NO\" }"; }

print_table() {
  printf '\n| %s | measured | wanted | reached |\n|---|---|---|---|\n' "$1"
  printf '%s\n' "${table[@]}"
}

build release --target mpi4dl_program emulated_switch
