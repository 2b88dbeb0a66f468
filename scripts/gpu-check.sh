#!/usr/bin/env bash
# gpu-check.sh [REPORT]: for a machine with a GPU. Builds against the PyTorch of python3, proves there that devices compute
# what one rank computes on the cpu, on every transport, and writes what happened into REPORT (build/gpu-report.txt), to be
# sent back. Exit 1 where something failed; that MPI does not read device memory is no failure.
# DEVICE (cuda), TREE (build/gpu; one that is given is not built), PROGRAM (mpi4dl) and SIZE of the benchmarks' images (512)
# choose others; QUICK=1 does little of each, to see whether the script works.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
report=${1:-build/gpu-report.txt}
device=${DEVICE:-cuda} tree=${TREE:-build/gpu} program=${PROGRAM:-mpi4dl} size=${SIZE:-512} quick=${QUICK:-}
failed=0 unavailable=0
log=$report.log
: >"$report"

say() { echo "$*" | tee -a "$report"; }

# try TEXT COMMAND...: runs the command for at most $limit seconds (900; 0 is no limit), and writes its last lines, its exit code
# and its seconds down.
try() {
  local text=$1 begin=$SECONDS code=0
  shift
  say "==> $text: $*"
  timeout "${limit:-900}" "$@" >"$log" 2>&1 </dev/null || code=$?
  tail -n 15 "$log" >>"$report"
  if [ "$code" -ne 0 ] && grep -q "does not read the memory of devices" "$log"; then
    say "    not available: see --device-transport in docs/gpu.md"
    unavailable=$((unavailable + 1))
    return
  fi
  say "    exit code $code after $((SECONDS - begin)) s"
  [ "$code" -eq 0 ] || failed=$((failed + 1))
}

# Always, because a build that was cut short is to go on.
if [ -z "${TREE:-}" ]; then
  limit=0 try "configure" cmake --preset release -B "$tree" -D MPI4DL_TORCH=python
  [ "$failed" -ne 0 ] || limit=0 try "build" cmake --build "$tree"
  [ "$failed" -eq 0 ] || {
    say "==> there is nothing to check, because it was not built; please send $report with an issue"
    exit 1
  }
fi
mpi4dl=("$tree/bin/$program")
try "what it stands on" "${mpi4dl[@]}" --version
try "devices" sh -c "command -v nvidia-smi >/dev/null && nvidia-smi -L || echo no nvidia-smi"

resnet=(--model resnet --depth 29 --image-size 96)
[ -z "$quick" ] || resnet=(--model resnet --depth 11 --image-size 32)
try "one rank" "${mpi4dl[@]}" verify --device "$device" "${resnet[@]}"
for transport in host mpi; do
  try "tiles, through $transport" mpirun -np 5 "${mpi4dl[@]}" --device-transport "$transport" verify --device "$device" \
    "${resnet[@]}" --num-spatial-parts 4
done
try "one deep halo exchange, recompute" mpirun -np 4 "${mpi4dl[@]}" verify --device "$device" "${resnet[@]}" --split-size 1 \
  --num-spatial-parts 4 --halo-D2 --fused-layers 2 --recompute
try "two directions" mpirun -np 2 "${mpi4dl[@]}" verify --device "$device" "${resnet[@]}" --split-size 2 --gems --batch-size 2

# The tests of the simulated device, on this one: NAME:RANKS.
tests=(execute_operators:4 exchange_redistribution:4 train_transparency:4 train_evaluator:4 train_checkpoint:4
  train_gradient_reduction:3 train_optimizer:1 train_bfloat16:4)
[ -z "$quick" ] || tests=(exchange_redistribution:2 train_optimizer:1)
for test in "${tests[@]}"; do
  try "${test%:*}" env MPI4DL_TEST_ON="$device" mpirun -np "${test#*:}" "$tree/bin/tests/${test%:*}_test"
done

training=(--model resnet --depth 29 --image-size 256 --num-images 32)
[ -z "$quick" ] || training=("${resnet[@]}" --num-images 8)
try "training" mpirun -np 5 "${mpi4dl[@]}" train --device "$device" "${training[@]}" --num-classes 4 --batch-size 4 \
  --num-epochs 2 --num-spatial-parts 4 --dtype bfloat16 --verbose
for transport in host mpi; do
  try "halo exchange, through $transport" mpirun -np 4 "${mpi4dl[@]}" --device-transport "$transport" bench halo --device "$device" \
    --image-size "$size" --in-channels 64 --halo-len 3 --compute --backward --validate
done
net=(--model resnet --depth 110 --image-size "$size" --batch-size 2)
[ -z "$quick" ] || net=("${resnet[@]}" --batch-size 2 --iterations 1 --warmup 0)
four=("${mpi4dl[@]}" bench train --device "$device" "${net[@]}" --num-spatial-parts 4 --split-size 1)
if [[ $device == privateuseone* ]]; then # libtorch does not move the parameters of its own modules to that
  try "four tiles against one rank" mpirun -np 4 "${four[@]}" --against one-rank
else
  for dtype in float32 bfloat16; do
    try "against PyTorch's libtorch on the same device, $dtype" "${mpi4dl[@]}" bench train --device "$device" "${net[@]}" \
      --dtype "$dtype" --baseline-dtype "$dtype"
  done
  try "four tiles on the devices there are, against libtorch on one" mpirun -np 4 "${four[@]}"
fi

say "==> $failed of these failed, $unavailable are not available; please send $report with an issue"
[ "$failed" -eq 0 ]
