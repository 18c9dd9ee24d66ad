#!/bin/bash
# An array job of AWS Batch; AWS_BATCH_JOB_ARRAY_INDEX tells the shard. Once:
#   aws batch register-job-definition --cli-input-json file://deploy/aws-batch-job-definition.json
# Then for each plan of more than one shard, such as
#   trialscan fleet plan 's3://my-bucket/runs/*' --out s3://my-bucket/plans/one --shards 64
#   deploy/aws-batch.sh s3://my-bucket/plans/one 64 my-queue
set -euo pipefail
aws batch submit-job --job-name trialscan --job-definition trialscan --job-queue "$3" \
  --array-properties "size=$2" --parameters "plan=$1"
