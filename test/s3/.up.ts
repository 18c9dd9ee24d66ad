import { sharedTrials } from '../support/golden.js'
import { makeBucket, upload } from '../support/s3.js'
const bucket = await makeBucket()
await upload(sharedTrials()[0]!.directory, bucket, `t/`)
console.log(bucket)
