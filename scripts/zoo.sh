#!/usr/bin/env bash
# zoo.sh --python PYTHON [--only PATTERN]... [--again PATTERN] [--largest MILLIONS] [--tiles TILINGS] [--table]:
# imports the convolutional nets of torchvision, timm, MONAI and segmentation-models-pytorch, and
# compares output, loss, every gradient and every running statistic with PyTorch's, on one rank and on
# uneven tiles, in float64. Of nets with more than 60 million parameters, matrices with more than 4 are
# frozen. PYTHON has PyTorch 2.9 or newer and those collections that are to be tried:
#   python3 -m venv build/pytorch
#   build/pytorch/bin/pip install torch torchvision timm monai segmentation-models-pytorch
# Takes hours for all of them. Results stay in build/zoo; the next call goes on where one ended.
# Exit code 1 if a net is imported and differs.
#
# zoo.sh --layouts --python PYTHON [NAME]...: twelve of these nets, or those named, in layouts of each
# kind, each equal to one rank.
# zoo.sh --training --python PYTHON [NAME]...: some of these nets, trained for three steps beside
# PyTorch's own optimizers, and for five steps on tiles, exported, and loaded back.
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=
script=zoo.py
arguments=()
while [ $# -gt 0 ]; do
  if [ "$1" = --python ]; then
    python=${2:?"--python needs a path"}
    shift
  elif [ "$1" = --layouts ] || [ "$1" = --training ]; then
    script=zoo_${1#--}.py
  else
    arguments+=("$1")
  fi
  shift
done
if [ -z "$python" ]; then
  echo "zoo.sh needs --python PYTHON, with PyTorch 2.9 or newer; see the top of this script" >&2
  exit 2
fi

build release --target mpi4dl_program mpi4dl_simulated import_check write_logits
exec "$python" -B "scripts/$script" "${arguments[@]}"
