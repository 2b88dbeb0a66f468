#!/usr/bin/env bash
# Trains until all epochs are done, in as many jobs as it takes. Submit it with sbatch.
# Slurm signals this script alone (B:), which asks mpirun to pass USR1 on to all ranks: they finish
# their step, write a checkpoint, and end. TERM would make mpirun kill them after a second.
#SBATCH --job-name=mpi4dl
#SBATCH --nodes=5
#SBATCH --ntasks-per-node=1
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -u

mpirun -np 5 mpi4dl train --model resnet --image-size 2048 --batch-size 2 --num-epochs 100 \
  --num-spatial-parts 4 --checkpoint-dir "$SLURM_SUBMIT_DIR/run1" --checkpoint-every 200steps --keep 3 --resume auto &
job=$!

# A shell answers a signal while it waits for a job in the background; then it has to wait again.
stopped=no again=yes
trap 'stopped=yes again=yes; kill -USR1 "$job"' USR1 TERM
while [ "$again" = yes ]; do
  again=no
  wait "$job"
  code=$?
done

# Stopped, not finished: the same job goes back into the queue, and the next one resumes.
if [ "$code" = 0 ] && [ "$stopped" = yes ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
