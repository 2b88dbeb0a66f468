#!/usr/bin/env bash
# Trains until all epochs are done, in as many jobs as it takes. Submit it with sbatch.
# srun passes signals on to all ranks. Slurm sends USR1 two minutes before the time limit, and TERM when
# the job is preempted; both make the ranks finish their step, write a checkpoint, and end.
#SBATCH --job-name=mpi4dl
#SBATCH --nodes=5
#SBATCH --ntasks-per-node=1
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -u

srun --mpi=pmix mpi4dl train --model resnet --image-size 2048 --batch-size 2 --num-epochs 100 \
  --num-spatial-parts 4 --checkpoint-dir "$SLURM_SUBMIT_DIR/run1" --checkpoint-every 200steps --keep 3 --resume auto |
  tee last-output.txt
code=${PIPESTATUS[0]}

# Stopped, not finished: the same job goes back into the queue, and the next one resumes.
if [ "$code" = 0 ] && grep -q '^stopped by a signal' last-output.txt; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
