#!/usr/bin/env bash
# What a stranger types, how the program ends, and the sentence that he reads: nothing succeeds
# silently. One row a mistake.
. "$(dirname "$0")/../support/program.sh"

rows=$(realpath "$(dirname "$0")/front_door")
cd "$scratch" || exit 1
on=1  # ranks of the rows that follow; 1 is without a launcher

# row CODE SENTENCE ARGUMENT...: `mpi4dl ARGUMENT...` ends with CODE; a failure says one sentence, last.
row() {
  local code=$1 sentence=$2
  shift 2
  [ "$BASHPID" != $$ ] || wait  # for mistakes, which look at what is there
  if [ "$on" = 1 ]; then
    what="mpi4dl $*"
    timeout --kill-after=5 60 "$MPI4DL" "$@" >"$output" 2>&1 </dev/null
    status=$?
  else
    run 60 "$on" "$MPI4DL" "$@"
  fi
  expect_exit "$code"
  if [ "$code" = 0 ]; then expect_text "$sentence"; else expect_one_sentence "$sentence"; fi
  # A launcher has words of its own.
  [ "$code" = 0 ] || [ "$on" != 1 ] || [[ $(tail -n 1 "$output") == "mpi4dl: "* ]] ||
    complain "the sentence is not the last line"
}

# mistake CODE SENTENCE ARGUMENT...: a row beside another one, as it changes nothing; `output` is not its own.
mistake() {
  [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n
  (
    failures=0 output=$(mktemp -p "$scratch")
    row "$@" >"$output.complaints"
    [ "$failures" = 0 ] || cat "$output.complaints" >>"$scratch/mistakes"
  ) &
}

# --- Commands and flags ---

mistake 2 "mpi4dl needs a command: train, evaluate"
row 2 "mpi4dl has no command trian (did you mean train?)" trian
expect_text "bench halo"  # the list of commands
mistake 2 "mpi4dl bench needs a command: halo, train" bench
mistake 2 "mpi4dl bench has no command hallo (did you mean halo?)" bench hallo
mistake 2 "mpi4dl data has no command frobnicate" data frobnicate
mistake 2 "mpi4dl has no command trian (did you mean train?)" help trian
mistake 2 "mpi4dl has no command eval (did you mean evaluate?)" eval
mistake 2 "mpi4dl needs a command before --model, such as mpi4dl train" --model resnet
row 0 "Commands, each with a --help of its own" help
row 0 "--num-spatial-parts" help train
row 0 "--halo-len" help bench halo
mistake 2 "mpi4dl train has no flag --batchsize (did you mean --batch-size?)" train --batchsize 4
mistake 2 "mpi4dl train has no flag --halo-d3 (did you mean --halo-D2?)" train --halo-d3
mistake 2 "mpi4dl has no command trian (did you mean train?)" trian --help
mistake 2 "mpi4dl train has no flag --batchsize (did you mean --batch-size?)" train --batchsize 3 --help
mistake 2 "--halo-D2 is about halos of tiles, but no stage has any" train --halo-D2
mistake 2 "--halo-D2 is about halos of tiles, but no stage has any" train --halo-D2 --stages 1x1
row 2 "--out-channels 16 is about a convolution" bench halo --out-channels 16
mistake 2 "mpi4dl evaluate has no flag --chekpoint (did you mean --checkpoint?)" evaluate --chekpoint x
mistake 2 "mpi4dl train does not expect 'folder'" train folder
mistake 2 "--batch-size: zero is not a number of at least 1" train --batch-size zero
mistake 2 "unknown model 'resnt' (did you mean resnet?); there are amoebanet, resnet" train --model resnt
mistake 2 "--batch-size: 4.5 is not a whole number" train --batch-size 4.5
mistake 2 "--balance: a,b is not a whole number" train --balance a,b
mistake 2 "--balance: 010 is not a whole number" train --balance 3,010
mistake 2 "--batch-size: 010 is not a whole number" train --batch-size 010
mistake 2 "--batch-size: 0x10 is not a whole number" train --batch-size 0x10
mistake 2 "--seed: 99999999999999999999 is too large" train --seed 99999999999999999999
mistake 2 "--depth: 3000000000 is too large" train --depth 3000000000
mistake 2 "--lr: 1e400 is not a number above 0" train --lr 1e400
mistake 2 "a balance of 3,2 is for 2 stages, but there is 1 (--balance)" train --model resnet \
  --resnet-version 1 --depth 8 --balance 3,2
mistake 2 "20 stages of 4 + 19 x 1 ranks need a multiple of 23 ranks, not 1; start with mpirun -np 23" \
  train --num-spatial-parts 4 --split-size 20
mistake 2 "--batch-size has no value" train --batch-size
mistake 2 "--batch-size is given more than once" train --batch-size 4 --batch-size 8
mistake 2 "--seed: -1 is not a number of at least 0" train --seed -1
mistake 2 "--momentum 0.5 requires --optimizer sgd" train --momentum 0.5 --optimizer adam
mistake 2 "--lr-step 5 requires --lr-schedule step" train --lr-step 5
mistake 2 "--lr-factor 0.5 requires --lr-schedule step" train --lr-factor 0.5

# --- A shell variable that is not set ---

mistake 2 "--datapath is given an empty value" train --datapath ""
row 2 "--checkpoint-dir is given an empty value" train --checkpoint-dir ""
mistake 2 "--checkpoint is given an empty value" train --weights ""
mistake 2 "--memory is given an empty value" plan --memory ""
mistake 2 "there is no folder ./train, and --datapath names no other" train --app medical

# --- What it stands on ---

row 0 "mpi4dl 0.1.0" --version
folder=$(ldd "$MPI4DL" | awk '$1 ~ /^libc10[.]so/ { print $3 }' | xargs realpath | xargs dirname)
expect_text ", in $folder"
expect_text "Open MPI v$($MPIRUN 1 --version | grep -m 1 -oE '[0-9]+[.][0-9.]+')"
# Debian's libtorch and another one never come together.
others=$(ldd "$MPI4DL" | awk '$1 ~ /^lib(torch|c10)/ { print $3 }' | xargs realpath | grep -v "^$folder/")
[ -z "$others" ] || complain "not from $folder: $others"
if ldd "$MPI4DL" | grep -q libtorch_cuda; then expect_text "cuDNN"; else expect_text "not in this libtorch"; fi
MPI4DL_MAX_ISA=sse2 row 0 "instruction set  sse2" --version
MPI4DL_MAX_ISA=neon row 2 "MPI4DL_MAX_ISA=neon names no instruction set" --version

# --- Config files ---

printf '[train]\nbatch-sise = 4\n' >key.ini
mistake 2 "--config key.ini, line 2: mpi4dl train has no flag batch-sise (did you mean batch-size?)" \
  --config key.ini train
printf '# mine\n\n[trian]\n' >section.ini
mistake 2 "--config section.ini, line 3: [trian] is not a command (did you mean train?)" \
  --config section.ini train
printf '[evaluate]\nbatch = 4\n' >other.ini
mistake 2 "--config other.ini, line 2: mpi4dl evaluate has no flag batch" --config other.ini train
printf '{"train": {"batch-size": 4}}\n' >config.json
mistake 2 "--config config.json, line 1: this looks like JSON" --config config.json train
head -c 400 /dev/zero | tr '\0' '\377' >bytes.ini
mistake 2 "--config bytes.ini, line 1: " --config bytes.ini train
printf '[train]\nmodel = resnet\nmodel = resnet\n' >twice.ini
mistake 2 "--config twice.ini, line 3: model stands here a second time" --config twice.ini train
printf '[train]\nbatch-size = many\n' >value.ini
mistake 2 "--config value.ini, line 2: --batch-size: many is not a number" --config value.ini train
printf '[train]\nhalo-D2 = maybe\n' >switch.ini
mistake 2 "--config switch.ini, line 2: halo-D2 is a switch: true or false, not maybe" \
  --config switch.ini train
printf 'batch-size = 4\n' >outside.ini
mistake 2 "--config outside.ini, line 1: batch-size is not a flag of every command" \
  --config outside.ini train
mistake 2 "--config none.ini: there is no such file" --config none.ini train
mistake 2 "--config .: this is a folder, not a file" --config . train
printf '[train]\nseed = 010\n' >octal.ini
mistake 2 "--config octal.ini, line 2: --seed: 010 is not a whole number" --config octal.ini train
printf '[train]\n= 4\n' >nameless.ini
mistake 2 "--config nameless.ini, line 2: '= 4' is neither a section such as [train] nor a flag such as" \
  --config nameless.ini train
printf '[bench halo]\nhalo-len = -1\n' >below.ini
mistake 2 "--config below.ini, line 2: --halo-len: -1 is not a number of at least 0" --config below.ini bench halo
printf '[train]\ndatapath =\n' >empty.ini
mistake 2 "--config empty.ini, line 2: datapath has no value" --config empty.ini train
printf '[train]\nhelp = true\n' >help.ini
row 2 "--config help.ini, line 2: mpi4dl train has no flag help" --config help.ini train
! grep -q "did you mean" "$output" || complain "it suggests what it refuses"
printf '\357\273\277[train]\r\nbatch-sise = 4\r\n' >windows.ini
mistake 2 "--config windows.ini, line 2: mpi4dl train has no flag batch-sise" --config windows.ini train
small=(--model resnet --resnet-version 1 --depth 8 --global-pool-head --image-size 32
       --num-classes 3 --num-images 9 --batch-size 4)
printf '[train]\nmodel = resnet\nresnet-version = 1\ndepth = 8\nbalance = 3, 2\nsplit-size = 2\nimage-size = 32
num-classes = 3\nnum-images = 9\nbatch-size = 4 # a comment\n' >list.ini
on=2
row 0 "stages 1x1 (3 of 5 cells) | 1x1 (2 of 5 cells)" --config list.ini train
on=1

# --- A run says what it is about to do ---

row 0 "train on     9 images of 3 classes, 2 steps of 4 images an epoch; 1 image left out of each" \
  train "${small[@]}" --run-dir run1 --checkpoint-dir trained
expect_text "validate on  nothing; --val-fraction 0.1 would hold out a tenth"
expect_text "ranks        1, "
expect_text " MiB expected for the rank that needs most"
expect_text "checkpoints  in trained, every 1 epoch, the last 3 kept"
on=4
row 2 "4 + 1 ranks need a multiple of 5 ranks, not 4; start with mpirun -np 5; or use split size 1 to keep all layers on the tiles (--split-size)" \
  train --num-spatial-parts 4
! grep -q MPI_ABORT "$output" || complain "the launcher reports an abort"
row 2 "there are no weights 'nowhere'" evaluate --checkpoint nowhere --stages 2x2
! grep -q MPI_ABORT "$output" || complain "the launcher reports an abort"
on=1

# --- A run can be repeated from its folder, bit for bit ---

losses() { grep -o '"loss":[^,]*' "$1/metrics.jsonl"; }
row 0 "2 steps of 4 images" --config run1/run.ini train --run-dir run2
cmp <(losses run1) <(losses run2) || complain "run.ini does not repeat the run"
again=(train --model resnet --resnet-version 1 --depth 8 --image-size 32 --num-classes 4 --batch-size 4 --num-images 8)
row 0 "2 steps of 4 images" --backend composed "${again[@]}" --run-dir run3 --checkpoint-dir run3
row 0 "2 steps of 4 images" --config run3/run.ini train --run-dir run4
cmp <(losses run3) <(losses run4) || complain "run.ini does not repeat the run with another backend"
row 0 "all is done already that --num-epochs 1 asks for" "${again[@]}" --checkpoint-dir run3 --resume auto
row 0 "going on behind step 2" "${again[@]}" --lr 0.01 --num-epochs 2 --checkpoint-dir run3 --resume auto --run-dir run3
row 0 "going on behind step 2" --config run3/run-00000002.ini train --run-dir run5
cmp <(losses run3 | tail -n 2) <(losses run5) || complain "the ini of a resumed part does not repeat it"
! grep -q num-epochs run3/run.ini || complain "the flags of the first part are gone"
grep -qE "with [0-9]+ threads? a rank" run1/run.ini || complain "run.ini does not say how many threads"
python3 - <<'END' || complain "config.json holds something else than values"
import json
options = json.load(open("run1/config.json"))["options"]
assert options["batch-size"] == 4 and options["global-pool-head"] is True, options
assert options["split-size"] is None and options["clip-norm"] is None, options
words = [v for v in options.values() if isinstance(v, str) and " " in v]
assert not words, words
END

# --- A checkpoint knows its own flags ---

row 0 "9 images, with any that were trained on, in" evaluate --checkpoint trained --num-images 9
row 0 "9 images" evaluate --weights trained --num-images 9
mistake 2 "--image-size 64 contradicts trained/step-00000002, which was trained with 32; leave the flag" \
  evaluate --checkpoint trained --image-size 64
row 2 "--num-classes 4 contradicts" predict --checkpoint trained --num-classes 4 --out p.csv
mistake 2 "--model amoebanet contradicts" plan --checkpoint trained --model amoebanet
mistake 2 "--fit crop contradicts" evaluate --checkpoint trained --app medical --datapath . --fit crop
row 0 "9 images" evaluate --checkpoint trained --num-images 9 --image-size 32x32 --num-classes 3
row 0 "resnet" plan --checkpoint trained
row 0 "tensors" export --checkpoint trained --to safetensors --out w.safetensors
mistake 2 "w.safetensors has weights, but does not say of which model; give its flags instead (--checkpoint)" \
  plan --checkpoint w.safetensors
mistake 2 "there are no weights 'nowhere'" plan --checkpoint nowhere
mistake 2 "there are no weights 'nowhere'" evaluate --checkpoint nowhere --depth 8
mistake 2 "there are no weights 'nowhere'" train "${small[@]}" --weights nowhere
row 2 "was trained with --app synthetic, not random" \
  train "${small[@]}" --app random --checkpoint-dir trained --resume auto
mistake 2 "--checkpoint is required" evaluate

# --- Does it fit? ---

wide=(--model resnet --depth 11 --global-pool-head --image-size 512 --batch-size 1)
row 0 "fits into 32 GiB a rank: yes" plan "${wide[@]}" --memory 32G
mistake 2 "--memory lots" plan "${wide[@]}" --memory lots
# What does not fit is an answer, not a mistake: exit code 1 without a sentence.
run 60 1 "$MPI4DL" plan "${wide[@]}" --memory 300M
expect_exit 1
expect_text "what would make it fit, the cheapest first"

# --- One run in a folder ---

row 2 "run1 holds another run already" train "${small[@]}" --run-dir run1
row 2 "trained has checkpoints already, up to step 2" train "${small[@]}" --checkpoint-dir trained

# shellcheck source-path=SCRIPTDIR source=front_door/data.rows
. "$rows/data.rows"
# shellcheck source-path=SCRIPTDIR source=front_door/models.rows
. "$rows/models.rows"
# shellcheck source-path=SCRIPTDIR source=front_door/hostile.rows
. "$rows/hostile.rows"

wait
if [ -s "$scratch/mistakes" ]; then
  cat "$scratch/mistakes"
  failures=$((failures + $(grep -c '^FAILED' "$scratch/mistakes")))
fi
verdict
