#!/bin/bash
# Shards on the cores of a machine, or with --sshlogin on those of several, by GNU parallel. Run again after a failure: what is done is left as it is.
#   trialscan fleet plan ./runs --out ./plan --shards 64
#   deploy/parallel.sh ./plan 64
#   trialscan fleet merge ./plan --out all.parquet
set -euo pipefail
seq 0 $(($2 - 1)) | parallel --retries 3 --joblog "$1/joblog" trialscan fleet run "$1" --shard {} --threads 1
