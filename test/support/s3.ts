/** A real S3 server, where there is one, and trials uploaded to it. */

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  CreateBucketCommand,
  PutBucketAclCommand,
  PutObjectAclCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import type { S3Options } from '#dist/index.js'
import { isRequired } from './golden.js'

/** Where it is: see test/s3/up.sh. */
export const ENDPOINT = process.env.TRIALSCAN_S3

/** Whether tests that need it run. In CI nothing is skipped: without it they then fail. */
export const HAS_S3 = ENDPOINT !== undefined || isRequired('s3')

if (!HAS_S3) {
  console.log('skipped: no S3 server; run `test/s3/up.sh DIR` and export TRIALSCAN_S3=http://127.0.0.1:7480')
}

export const CREDENTIALS = { accessKeyId: 'AKTEST', secretAccessKey: 'SKTEST' }

/** How our own client gets there. */
export const OPTIONS: S3Options = {
  endpoint: ENDPOINT ?? 'http://127.0.0.1:7480',
  region: 'us-east-1',
  forcePathStyle: true,
  credentials: CREDENTIALS,
}

/** The same for a child process. */
export const ENVIRONMENT = {
  AWS_ENDPOINT_URL_S3: OPTIONS.endpoint!,
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
}

export function client(): S3Client {
  return new S3Client({
    endpoint: OPTIONS.endpoint!,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: CREDENTIALS,
  })
}

let buckets = 0

/** A new bucket, of a name that no other test has. */
export async function makeBucket({ isPublic = false } = {}): Promise<string> {
  const bucket = `trialscan-${process.pid}-${Date.now().toString(36)}-${buckets++}`
  const s3 = client()
  await s3.send(new CreateBucketCommand({ Bucket: bucket }))
  if (isPublic) await s3.send(new PutBucketAclCommand({ Bucket: bucket, ACL: 'public-read' }))
  s3.destroy()
  return bucket
}

export async function put(bucket: string, key: string, body: string | Uint8Array): Promise<void> {
  const s3 = client()
  await s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }))
  s3.destroy()
}

/** All files of a directory, below a prefix that ends with a slash or is empty. */
export async function upload(
  directory: string,
  bucket: string,
  prefix: string,
  { isPublic = false } = {},
): Promise<void> {
  const s3 = client()
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(path =>
    statSync(join(directory, path)).isFile(),
  )
  await Promise.all(
    paths.map(async path => {
      const object = { Bucket: bucket, Key: `${prefix}${path}` }
      await s3.send(new PutObjectCommand({ ...object, Body: readFileSync(join(directory, path)) }))
      if (isPublic) await s3.send(new PutObjectAclCommand({ ...object, ACL: 'public-read' }))
    }),
  )
  s3.destroy()
}
