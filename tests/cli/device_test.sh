#!/usr/bin/env bash
# The program on a simulated device: layouts and transports are equal to one rank on the cpu, checkpoints go from a device to the
# cpu and back, and where there is no device one sentence says so. MPI4DL_SIMULATED: the program with such a device.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

model=(--model resnet --depth 11 --image-size 32 --num-classes 4)
on_device=(--device privateuseone)

# equal RANKS ARGUMENT...: what a layout computes on devices is what one rank computes on the cpu.
equal() {
  local ranks=$1
  shift
  run 120 "$ranks" "$MPI4DL_SIMULATED" verify "${on_device[@]}" "$@"
  expect_exit 0
  expect_text "equal to one rank"
}

layouts() {
  equal 1 "${model[@]}"
  equal 5 "${model[@]}" --num-spatial-parts 4 --batch-size 2 --parts 2
  equal 4 --model resnet --depth 20 --image-size 35 --num-spatial-parts 4 --split-size 1 --halo-D2 --fused-layers 2 --recompute
  equal 4 "${model[@]}" --split-size 2 --gems --batch-size 4
  equal 4 --model amoebanet --num-layers 3 --num-filters 16 --image-size 96 --stages 2x2 --batch-size 2
  equal 4 "${model[@]}" --stages 2x1,b:2 --batch-size 4
  MPI4DL_SIMULATED_MPI=aware equal 5 "${model[@]}" --num-spatial-parts 4 --device-transport mpi
}

# train PROGRAM RANKS ARGUMENT...: the steps of an epoch are four.
train() {
  local program=$1 ranks=$2
  shift 2
  # shellcheck disable=SC2086 # a program with flags
  run 120 "$ranks" $program train "${model[@]}" --num-images 16 --batch-size 4 --lr 0.01 --dtype float64 "$@"
  expect_exit 0
}

# same_losses LOG: each step has the loss of the undisturbed run on the cpu.
same_losses() {
  python3 - "$1" "$scratch/whole.log" >"$output" 2>&1 <<'END' || complain "other losses"
import json, sys
def losses(path):
    return {(line["epoch"], line["step"]): line["loss"] for line in map(json.loads, open(path))}
mine, whole = losses(sys.argv[1]), losses(sys.argv[2])
print(mine, whole)
assert max(mine) == max(whole)
assert all(abs(mine[at] - whole[at]) <= 1e-9 * abs(whole[at]) for at in mine)
END
}

# An epoch on devices, then one on the cpu from its checkpoint, in other layouts; and the reverse.
checkpoints() {
  local device="$MPI4DL_SIMULATED ${on_device[*]}"
  train "$MPI4DL" 1 --num-epochs 2 --json-log "$scratch/whole.log"
  train "$device" 5 --num-spatial-parts 4 --num-epochs 1 --checkpoint-dir "$scratch/from-device"
  train "$MPI4DL" 1 --num-epochs 2 --resume auto --checkpoint-dir "$scratch/from-device" --json-log "$scratch/cpu.log"
  same_losses "$scratch/cpu.log"
  train "$MPI4DL" 2 --split-size 2 --num-epochs 1 --checkpoint-dir "$scratch/from-cpu"
  train "$device" 5 --num-spatial-parts 4 --num-epochs 2 --resume auto --checkpoint-dir "$scratch/from-cpu" \
    --json-log "$scratch/device.log"
  same_losses "$scratch/device.log"
}

# Benchmarks: no wrong pixel on either transport, and training beside one rank, with a matrix product of the baseline on the device.
# (libtorch moves the parameters of its own modules to devices that it knows, and this is none of them.)
benchmarks() {
  local halo=(bench halo "${on_device[@]}" --image-size 24 --halo-len 2 --iterations 2 --warmup 1 --validate --compute)
  run 120 4 "$MPI4DL_SIMULATED" "${halo[@]}" --backward --json "$result"
  expect_exit 0
  expect_text '"wrong": 0,' "$result"
  expect_text "from device to device through host memory"
  MPI4DL_SIMULATED_MPI=aware run 120 4 "$MPI4DL_SIMULATED" "${halo[@]}" --device-transport mpi --json "$result"
  expect_exit 0
  expect_text '"wrong": 0,' "$result"
  expect_text "from device to device through MPI"
  run 60 4 "$MPI4DL_SIMULATED" "${halo[@]}" --transport messages
  expect_exit 2
  expect_one_sentence "--transport is about halos in host memory"
  run 120 4 "$MPI4DL_SIMULATED" bench train "${on_device[@]}" --tf32 "${model[@]}" --num-spatial-parts 4 \
    --split-size 1 --batch-size 2 --iterations 1 --warmup 0 --against one-rank
  expect_exit 0
  expect_text "ratio"
}

# A model that was trained on the cpu says the same of images on devices.
predictions() {
  local seen=(--app synthetic --num-images 8 --batch-size 4 --dtype float64)
  train "$MPI4DL" 1 --num-epochs 1 --checkpoint-dir "$scratch/model"
  run 120 1 "$MPI4DL" evaluate --checkpoint "$scratch/model" "${seen[@]}" --json "$scratch/cpu.json"
  expect_exit 0
  run 120 5 "$MPI4DL_SIMULATED" evaluate "${on_device[@]}" --checkpoint "$scratch/model" "${seen[@]}" \
    --num-spatial-parts 4 --json "$result"
  expect_exit 0
  python3 - "$result" "$scratch/cpu.json" >"$output" 2>&1 <<'END' || complain "another loss"
import json, sys
mine, whole = (json.load(open(path)) for path in sys.argv[1:])
print(mine, whole)
assert abs(mine["loss"] - whole["loss"]) <= 1e-9 * abs(whole["loss"])
assert mine["confusion"] == whole["confusion"]
END
  run 120 1 "$MPI4DL" predict --checkpoint "$scratch/model" "${seen[@]}" --out "$scratch/cpu.csv"
  expect_exit 0
  run 120 4 "$MPI4DL_SIMULATED" predict "${on_device[@]}" --checkpoint "$scratch/model" "${seen[@]}" \
    --num-spatial-parts 4 --split-size 1 --out "$scratch/device.csv"
  expect_exit 0
  python3 - "$scratch/device.csv" "$scratch/cpu.csv" >"$output" 2>&1 <<'END' || complain "other predictions"
import csv, sys
mine, whole = (list(csv.reader(open(path))) for path in sys.argv[1:])
print(mine, whole)
assert mine[0] == whole[0] and len(mine) == len(whole) == 9
def close(a, b):
    return a == b or abs(float(a) - float(b)) < 1e-6
assert all(close(a, b) for row, other in zip(mine[1:], whole[1:]) for a, b in zip(row, other))
END
}

# The plan knows what lies where, before and when a device is full.
memory() {
  run 60 1 "$MPI4DL" plan --on-device "${model[@]}" --memory 1M
  expect_exit 1
  expect_text "on host"
  expect_text "fits into 1 MiB a device: no"
  run 120 4 env MPI4DL_SIMULATED_MEMORY=5000000 "$MPI4DL_SIMULATED" train "${on_device[@]}" "${model[@]}" --batch-size 8 \
    --num-spatial-parts 4 --split-size 1
  expect_exit 1
  expect_one_sentence "has no memory left, where the plan expected"
  expect_text "raise --split-size, --spatial-size or --num-spatial-parts, or give --recompute"
  run 120 4 env MPI4DL_SIMULATED_MEMORY=500000 "$MPI4DL_SIMULATED" bench halo "${on_device[@]}" --image-size 256 --in-channels 8
  expect_exit 1
  expect_one_sentence "has no memory left; use smaller images or a smaller batch"
  run 120 4 env MPI4DL_SIMULATED_PINNED=4000 "$MPI4DL_SIMULATED" bench halo "${on_device[@]}" --image-size 256 --in-channels 8
  expect_exit 1
  expect_one_sentence "the host has no memory left that could be pinned for device"
  train "$MPI4DL" 1 --num-epochs 1 --checkpoint-dir "$scratch/small"
  run 120 1 env MPI4DL_SIMULATED_MEMORY=1500000 "$MPI4DL_SIMULATED" evaluate "${on_device[@]}" --checkpoint "$scratch/small" \
    --app synthetic --num-images 64 --batch-size 64
  expect_exit 1
  expect_one_sentence "has no memory left; use smaller images or a smaller batch"
}

no_device() {
  run 60 3 "$MPI4DL_SIMULATED" verify "${on_device[@]}" "${model[@]}" --stages 1x3
  expect_exit 0
  expect_text "3 ranks of $(hostname) share 2 devices"
  # A launcher that does not tell ranks their place, or tells them another one; and Slurm, which may show each rank another
  # device by the same name.
  run 60 2 env OMPI_COMM_WORLD_LOCAL_RANK=0 "$MPI4DL_SIMULATED" verify "${on_device[@]}" "${model[@]}" --stages 1x2
  expect_exit 2
  expect_one_sentence ":0 by what its launcher says of its place on"  # libtorch 1.13 names devices otherwise
  expect_text "rank 1 has taken "
  expect_text "has place 1 there, which is that of "
  local given
  for given in 1 a100:1; do
    run 60 2 env MPI4DL_SIMULATED_DEVICES=1 SLURM_GPUS_PER_TASK=$given "$MPI4DL_SIMULATED" verify "${on_device[@]}" "${model[@]}" --stages 1x2
    expect_exit 0
    if grep -q share "$output"; then complain "each has a device of its own"; fi
  done
  # Nobody asked for a device, and none is taken.
  run 60 1 "$MPI4DL_SIMULATED" verify --backend cpu "${model[@]}"
  expect_exit 0
  run 60 1 "$MPI4DL_SIMULATED" plan "${model[@]}"
  expect_exit 0
  if grep -q "on device" "$output"; then complain "plan has taken a device"; fi
  run 60 1 "$MPI4DL" train --dtype float16 "${model[@]}"
  expect_exit 2
  expect_one_sentence "float16 would need its loss scaled"
  run 60 1 "$MPI4DL" verify --device cuda "${model[@]}"
  expect_exit 2
  expect_one_sentence "there is no device cuda"
  run 60 2 "$MPI4DL_SIMULATED" verify --device privateuseone:7 "${model[@]}"
  expect_exit 2
  expect_one_sentence "there is no device privateuseone:7: this node has 2 of its type"
  run 60 1 "$MPI4DL" verify --device gpu "${model[@]}"
  expect_exit 2
  expect_one_sentence "'gpu' is no device"
  run 60 1 "$MPI4DL_SIMULATED" verify "${on_device[@]}" --backend cpu "${model[@]}"
  expect_exit 2
  expect_one_sentence "the kernels of backend cpu compute in host memory"
  run 60 1 "$MPI4DL_SIMULATED" verify "${on_device[@]}" --device-transport mpi "${model[@]}"
  expect_exit 2
  expect_one_sentence "this MPI library says that it does not read the memory of devices"
  run 60 1 "$MPI4DL" verify --tf32 "${model[@]}"
  expect_exit 2
  expect_one_sentence "--tf32 is about products on a device"
  run 60 1 "$MPI4DL" verify --device-transport host "${model[@]}"
  expect_exit 2
  expect_one_sentence "--device-transport host is about halos of a device"
}

layouts
checkpoints
benchmarks
predictions
memory
no_device
verdict
