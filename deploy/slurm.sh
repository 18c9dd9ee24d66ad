#!/bin/bash
# An array job of Slurm; SLURM_ARRAY_TASK_ID tells the shard. On a file system that all nodes share:
#   trialscan fleet plan /shared/runs --out /shared/plan --shards 64
#   sbatch --array=0-63 deploy/slurm.sh /shared/plan
#   trialscan fleet merge /shared/plan --out all.parquet
#SBATCH --job-name=trialscan
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH --requeue
set -euo pipefail
exec trialscan fleet run "$1" --threads "${SLURM_CPUS_PER_TASK:-2}"
