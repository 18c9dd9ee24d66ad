/** What the command line can say of trials on S3: the same options for every command that opens one. */

import type { Command } from 'commander'
import { pathText, wholeNumberArgument } from './arguments.js'

export interface S3Flags {
  readonly s3Endpoint?: string
  readonly s3Region?: string
  readonly s3ForcePathStyle?: boolean
  readonly s3Anonymous?: boolean
  readonly s3Cache?: string
  readonly s3MinRate?: number
  readonly s3ListLimit?: number
}

export function withS3Options(command: Command): Command {
  return command
    .option('--s3-endpoint <URL>', 'of S3: the server (default: AWS_ENDPOINT_URL_S3, else that of AWS)')
    .option('--s3-region <REGION>', 'of S3: where the bucket is (default: AWS_REGION, else what S3 says)')
    .option('--s3-force-path-style', 'of S3: the bucket in the path, not in the name of the host')
    .option('--s3-anonymous', 'of S3: unsigned requests, for public buckets')
    .option('--s3-cache <DIR>', 'of S3: keep there what was read, for the next time', pathText)
    .option(
      '--s3-min-rate <BYTES>',
      'of S3: the least an answer has to bring in a second (default: 1000; 0: nothing)',
      wholeNumberArgument,
    )
    .option(
      '--s3-list-limit <N>',
      'of S3: objects of no trial, after which a listing ends (default: 100000; 0: nowhere)',
      wholeNumberArgument,
    )
}
