#!/usr/bin/env bash
# seeds_test.sh: every command line of MPI4DL's documents runs here by its own name. Another launcher,
# no .py, smaller images and models; nothing else is changed.
# shellcheck source-path=SCRIPTDIR source=../support/program.sh
. "$(dirname "$0")/../support/program.sh"

project=$(realpath "$(dirname "$0")/../..")
seen=" " # all words of all commands that ran

# The commands as they are written there. Before a command, `with` gives the variables in it values,
# and says what words about its layout it must print.
commands() {
  cat <<'TABLE'
with np=4 halo_benchmark=benchmarks/communication/halo/benchmark_sp_halo_exchange.py
with image_size=9 batch_size=2 num_spatial_parts=4 partition=square says="tiles 2x2"
$MV2_HOME/bin/mpirun_rsh --export-all -np $np --hostfile  {$HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python ${halo_benchmark} --image-size ${image_size} --batch-size ${batch_size} --num-spatial-parts ${num_spatial_parts} --slice-method ${partition}
with halo_benchmark=benchmarks/communication/halo/benchmark_sp_halo_exchange_with_compute.py
with says="exchange during convolution"
$MV2_HOME/bin/mpirun_rsh --export-all -np $np --hostfile  {$HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python ${halo_benchmark} --image-size ${image_size} --batch-size ${batch_size} --num-spatial-parts ${num_spatial_parts} --slice-method ${partition}
with halo_benchmark=benchmarks/communication/halo/benchmark_sp_halo_exchange_with_compute_val.py
with partition=horizontal says="tiles 4x1"
$MV2_HOME/bin/mpirun_rsh --export-all -np $np --hostfile  {$HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python ${halo_benchmark} --image-size ${image_size} --batch-size ${batch_size} --num-spatial-parts ${num_spatial_parts} --slice-method ${partition}
with says="tiles 1x4"
$MV2_HOME/bin/mpirun_rsh --export-all -np 4 --hostfile {$HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python now-dl/benchmarks/communication/halo/benchmark_sp_halo_exchange.py --image-size 32 --batch-size 32 --num-spatial-parts 4 --slice-method "vertical"
with np=3 model_type=benchmarks/spatial_parallelism/benchmark_amoebanet_sp.py
with num_spatial_parts=2 image_size=512 batch_size=2 partition=horizontal says="stages 2x1 ("
$MV2_HOME/bin/mpirun_rsh --export-all -np $np --hostfile  {$HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python ${model_type} --halo-D2 --num-spatial-parts ${num_spatial_parts}  --image-size ${image_size} --batch-size ${batch_size} --slice-method ${partition}
with says="stages 1x4 ("
$MV2_HOME/bin/mpirun_rsh --export-all -np 5 --hostfile {$HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python now-dl/benchmarks/spatial_parallelism/benchmark_amoebanet_sp.py --image-size 512 --num-spatial-parts 4 --slice-method "vertical" --split-size 2 --spatial-size 1
with says="on 9 ranks"
$MV2_HOME/bin/mpirun_rsh --export-all -np 9 --hostfile {$HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python now-dl/benchmarks/spatial_parallelism/benchmark_amoebanet_sp.py --image-size 512 --num-spatial-parts 4 --slice-method "vertical" --split-size 3 --spatial-size 2
with says="D2 with 1 fused"
$MV2_HOME/bin/mpirun_rsh --export-all -np 5 --hostfile {$HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so now-dl/benchmarks/spatial_parallelism/benchmark_resnet_sp.py --halo-D2 --num-spatial-parts 4 --image-size 1024 --batch-size 2 --slice-method "square"
with np=2 gems_sp_model_script=benchmarks/gems_master_model/benchmark_resnet_gems_master.py
with split_size=2 batch_size=1 times=1 says="effective batch 1,"
$MV2_HOME/bin/mpirun_rsh --export-all -np ${np} --hostfile ${HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python ${gems_sp_model_script} --split-size ${split_size} --batch-size ${batch_size} --times ${times}
with np=8 says="effective batch 2,"
$MV2_HOME/bin/mpirun_rsh --export-all -np ${np} --hostfile ${HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python benchmarks/gems_master_with_spatial_parallelism/benchmark_amoebanet_gems_master_with_sp.py --split-size 5 --batch-size 1 --image-size 1024 --times 2
with says="effective batch 4,"
$MV2_HOME/bin/mpirun_rsh --export-all -np $np --hostfile ${HOSTFILE} MV2_USE_GDRCOPY=0 MV2_ENABLE_AFFINITY=0 MV2_USE_CUDA=1 LD_PRELOAD=$MV2_HOME/lib/libmpi.so python benchmarks/gems_master_model/benchmark_resnet_gems_master_with_sp.py --split-size 5 --image-size 2048 --batch-size 1 --times 4
with says="stages 1x4 ("
$MV2_HOME/bin/mpirun_rsh --export-all -np 5 --hostfile {$HOSTFILE} MV2_USE_CUDA=1 MV2_HYBRID_BINDING_POLICY=spread MV2_CPU_BINDING_POLICY=hybrid MV2_USE_GDRCOPY=0 PYTHONNOUSERSITE=true LD_PRELOAD=$MV2_HOME/lib/libmpi.so python benchmarks/spatial_parallelism/benchmark_amoebanet_sp.py --image-size 512 --num-spatial-parts 4 --slice-method "vertical" --split-size 2 --spatial-size 1
TABLE
}

# What its help says: of the halo benchmarks, and of all others.
halo_help='usage: spatial_halo_exchange_bench.py [-h] [--fp16-allreduce] [--image-size IMAGE_SIZE] [--batch-size BATCH_SIZE] [--halo-len HALO_LEN] [--in-channels IN_CHANNELS]
                                      [--warmup WARMUP] [--iterations ITERATIONS] [--out-channels OUT_CHANNELS]'
model_help='usage: amoebanet_run.py [-h] [-v] [--batch-size BATCH_SIZE] [--parts PARTS] [--split-size SPLIT_SIZE] [--num-spatial-parts NUM_SPATIAL_PARTS]
                        [--spatial-size SPATIAL_SIZE] [--times TIMES] [--image-size IMAGE_SIZE] [--num-epochs NUM_EPOCHS] [--num-layers NUM_LAYERS]
                        [--num-filters NUM_FILTERS] [--balance BALANCE] [--halo-D2] [--fused-layers FUSED_LAYERS] [--local-DP LOCAL_DP] [--slice-method SLICE_METHOD]
                        [--app APP] [--datapath DATAPATH]'

# value FLAG DEFAULT WORD...: what the words say about the flag.
value() {
  local flag=$1 value=$2
  shift 2
  while [ $# -gt 0 ]; do
    if [ "$1" = "$flag" ]; then value=$2; fi
    shift
  done
  echo "$value"
}

# benchmark RANKS SCRIPT WORD...: runs it, made small: few filters, layers and steps, and images an
# eighth as wide where they are large. $says must be among its words.
benchmark() {
  local ranks=$1 script=$2 words=() batch size
  shift 2
  batch=$(value --batch-size 2 "$@") size=$(value --image-size 32 "$@")
  case $script in
    */halo/*) words=(--warmup 1 --iterations 3) ;;
    *) words=(--num-images $((batch * $(value --times 2 "$@")))) ;;
  esac
  case $script in
    *amoebanet*) words+=(--num-filters 16) ;;
    *resnet*) words+=(--depth 11) ;;
  esac
  if [[ $script == *amoebanet* && " $* " != *" --num-layers "* ]]; then words+=(--num-layers 3); fi
  if [[ $script != */halo/* && " $* " != *" --batch-size "* ]]; then words+=(--batch-size "$batch"); fi
  if [ "$size" -ge 512 ]; then
    local before=("$@") i
    for ((i = 1; i < ${#before[@]}; ++i)); do
      if [ "${before[i - 1]}" = --image-size ]; then before[i]=$((size / 8)); fi
    done
    set -- "${before[@]}"
  fi
  run 60 "$ranks" "$project/$script" "$@" "${words[@]}"
  expect_exit 0
  case $script in
    */halo/*) expect_text "ratio to bare MPI" ;;
    *) expect_text "images per sec: mean" ;;
  esac
  expect_text "$says"
  seen+="$* "
}

# as_written LINE: a command of the documents.
as_written() {
  local MV2_HOME=/opt/mvapich2 HOSTFILE=hosts words=() i=0 ranks
  : "$MV2_HOME" "$HOSTFILE"
  eval "words=($1)"
  ranks=$(value -np 0 "${words[@]}")
  while [[ ${words[i]} != *benchmark_* ]]; do i=$((i + 1)); done
  local script=${words[i]#now-dl/}
  benchmark "$ranks" "${script%.py}" "${words[@]:i+1}"
}

all_commands() {
  local line count=0
  while IFS= read -r line; do
    case $line in
      "with "*) eval "${line#with }" ;;
      *)
        as_written "$line"
        count=$((count + 1))
        ;;
    esac
  done < <(commands)
  echo "$count commands of the documents"
}

# Every flag of the help at its default, as far as small runs allow, whether the benchmark has a use
# for it or not.
defaults=(-v --parts 1 --split-size 2 --num-spatial-parts 4 --spatial-size 1 --times 1 --image-size 32
  --num-epochs 1 --fused-layers 1 --local-DP 1 --slice-method square --datapath ./train)

flags_at_their_defaults() {
  says="stages 1x1 ("
  benchmark 2 benchmarks/layer_parallelism/benchmark_resnet_lp "${defaults[@]}" --num-layers 18
  says="effective batch 2,"
  benchmark 2 benchmarks/gems_master_model/benchmark_amoebanet_gems_master "${defaults[@]}"
  says="stages 2x2 ("
  benchmark 5 benchmarks/spatial_parallelism/benchmark_resnet_sp "${defaults[@]}" --app 3
}

flags_with_other_values() {
  says="stages 2x1x1 (3 of 9 cells) | 2x1x1 (6 of 9 cells), 1f1b with 2 micro-batches"
  benchmark 4 benchmarks/layer_parallelism/benchmark_amoebanet_lp --local-DP 2 --balance 3,6 \
    --parts 2 --num-layers 3 --batch-size 4 --image-size 64
  says="D2 with 2 fused"
  benchmark 3 benchmarks/spatial_parallelism/benchmark_resnet_sp --halo-D2 --fused-layers 2 \
    --num-spatial-parts 2 --num-epochs 2
  expect_text "epoch   2"
  says="gems with 4 micro-batches"
  benchmark 5 benchmarks/gems_master_model/benchmark_resnet_gems_master --split-size 5 --times 4 \
    --batch-size 1
  says="image 16x16, 2 channels, batch 1, halo 2"
  benchmark 4 benchmarks/communication/halo/benchmark_sp_halo_exchange_with_compute_val \
    --image-size 16 --in-channels 2 --out-channels 4 --halo-len 2 --fp16-allreduce
  expect_text "sum of weight gradients"
}

# Whatever the help names was given to a benchmark above.
all_flags_were_seen() {
  local flag
  seen+="--warmup --iterations --num-layers --num-filters " # see benchmark()
  what="flags of the documents"
  : >"$output"
  while read -r flag; do
    [[ $seen == *" $flag "* ]] || complain "no command has $flag"
  done < <(grep -oE -e '\[--?[A-Za-z0-9-]+' <<<"$halo_help $model_help" | tr -d '[' | grep -vx -e -h)
}

# refuses SENTENCE SCRIPT WORD...: one sentence, which names the benchmark that has what was asked for.
refuses() {
  local sentence=$1 script=$2
  shift 2
  run 30 2 "$project/benchmarks/$script" "$@"
  expect_exit 2
  expect_one_sentence "$sentence"
}

what_others_have() {
  refuses "no stage has tiles, so there is no use for 9 spatial parts; runs with spatial size 1 and spatial \
parts have them, such as those in benchmarks/spatial_parallelism (--spatial-size, --num-spatial-parts)" \
    layer_parallelism/benchmark_resnet_lp --num-spatial-parts 9
  refuses "--halo-D2 is about halos of tiles, but no stage has any; the benchmarks in \
benchmarks/spatial_parallelism have them" gems_master_model/benchmark_amoebanet_gems_master --halo-D2
  refuses "--times 4 is about two directions, but this run has one; runs with --gems have two, such as \
those in benchmarks/gems_master_model" spatial_parallelism/benchmark_resnet_sp --times 4
  refuses "--num-layers 6 is about AmoebaNet, but --model is resnet" \
    layer_parallelism/benchmark_resnet_lp --num-layers 6
}

# Found beside the scripts, by name, or on the PATH.
finds_the_program() {
  what="a benchmark that looks for the program"
  mkdir -p "$scratch/copy" "$scratch/path"
  cp -r "$project/benchmarks" "$scratch/copy"
  local script=$scratch/copy/benchmarks/layer_parallelism/benchmark_resnet_lp
  env -u MPI4DL PATH=/usr/bin:/bin "$script" --help >"$output" 2>&1
  status=$?
  expect_exit 2
  expect_text "mpi4dl is neither built"
  ln -s "$MPI4DL" "$scratch/path/mpi4dl"
  env -u MPI4DL PATH="$scratch/path:/usr/bin:/bin" "$script" --help >"$output" 2>&1
  status=$?
  expect_exit 0
  expect_text "--num-spatial-parts"
}

all_commands
flags_at_their_defaults
flags_with_other_values
all_flags_were_seen
what_others_have
finds_the_program
verdict
