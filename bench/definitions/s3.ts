/** A trial on S3, against what one would write with the SDK. Needs a server: see test/s3/up.sh. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { createTrial, type ScanOptions } from '#dist/index.js'
import { eventFilePath, indexFilePath } from '../../fixtures/event-writer.js'
import { CREDENTIALS, ENDPOINT, makeBucket, OPTIONS, upload } from '../../test/support/s3.js'
import { makeCheckpoint } from '../checkpoints.js'
import { type Case, type Contender, contender, type Definition, expectSame } from '../definition.js'
import * as ours from '../engines/ours.js'
import { Answerer } from '../processes.js'
import { filesUnder, type Trial, type TrialName, trial } from '../trials.js'

/** A region away: half of it each way, and what one connection gets. */
const LATENCY_MS = 30
const CONNECTION_MB_PER_SECOND = 60
const AT_ONCE = 32

export const s3: Definition = {
  name: 's3',
  measures: 'the 18 reductions of a trial on S3; the others only fetch the bytes, knowing the index already',
  async *cases({ quick }): AsyncGenerator<Case> {
    if (ENDPOINT === undefined) {
      console.log('left out: no S3 server; run test/s3/up.sh DIR and export TRIALSCAN_S3')
      return
    }
    const bucket = await makeBucket()
    const server = new URL(ENDPOINT).host
    const link = fileURLToPath(new URL('../children/slow-link.mjs', import.meta.url))
    const slow = new Answerer([process.execPath, link, server, `${LATENCY_MS}`, `${CONNECTION_MB_PER_SECOND}`])
    const away = `http://127.0.0.1:${await slow.askLine('')}`
    for (const name of ['small', 'large'] satisfies TrialName[]) {
      const input = trial(name, true)
      await upload(input.dir, bucket, `${name}/`)
      const some = input.tensors[Math.floor(input.tensors.length / 2)]!.name
      for (const [where, endpoint] of [
        ['here', ENDPOINT],
        [`${LATENCY_MS} ms away`, away],
      ] as const) {
        for (const only of [undefined, some]) {
          const size = `${input.title}${only === undefined ? '' : ', one tensor of them'}, ${where}`
          const contenders = await contendersOf({ input, bucket, prefix: `${name}/`, endpoint, only })
          yield { size, rounds: 3, contenders }
        }
      }
    }
    const huge = trial('huge', quick)
    await upload(huge.dir, bucket, 'huge/')
    for (const [where, endpoint] of [
      ['here', ENDPOINT],
      [`${LATENCY_MS} ms away`, away],
    ] as const) {
      const contenders = await contendersOf({ input: huge, bucket, prefix: 'huge/', endpoint, only: undefined })
      yield { size: `${huge.title}, ${where}`, contenders: [contenders[0]!, contenders.at(-1)!] }
    }
    const tiny = trial('tiny', quick)
    await upload(tiny.dir, bucket, 'tiny/')
    const tinyPlace = { input: tiny, bucket, prefix: 'tiny/', endpoint: ENDPOINT }
    const rows = tiny.steps.length * tiny.tensors.length
    yield { size: `${tiny.title}, opened and scanned, here`, contenders: opened(tinyPlace, rows) }
    const saved = makeCheckpoint('bfloat16', true)
    await upload(saved.dir, bucket, 'checkpoint/')
    for (const [where, endpoint] of [
      ['here', ENDPOINT],
      [`${LATENCY_MS} ms away`, away],
    ] as const) {
      const place = { input: saved, bucket, prefix: 'checkpoint/', endpoint }
      const size = `a checkpoint, ${saved.title}, opened`
      yield { size: `${size} and scanned, ${where}`, rounds: 3, contenders: opened(place, saved.tensors.length) }
      yield { size: `${size}, ${where}`, rounds: 3, contenders: opened(place, saved.tensors.length, true) }
    }
  },
}

interface Objects {
  /** The uploaded trial. */
  readonly input: { readonly dir: string }
  readonly bucket: string
  readonly prefix: string
  readonly endpoint: string
}

interface Place extends Objects {
  readonly input: Trial
  /** The one tensor that is asked for; undefined: all. */
  readonly only: string | undefined
}

interface Piece {
  readonly key: string
  /** Undefined: the whole object. */
  readonly range?: readonly [startByte: number, byteLength: number]
}

/**
 * Contenders from the first listing to the last row, beside a plain reader of all objects.
 * @param isListed true to end with the names of tensors
 */
function opened(place: Objects, rows: number, isListed = false): Contender[] {
  const { input, bucket, prefix, endpoint } = place
  const scan = async (): Promise<number> => {
    const trial = await createTrial(`s3://${bucket}/${prefix}`, { s3: { ...OPTIONS, endpoint } })
    let rows = isListed ? trial.tensorNames().length : 0
    if (!isListed) for await (const { error } of trial.scan()) if (!error) rows++
    await trial.close()
    return rows
  }
  const objects = filesUnder(input.dir).map(path => ({ key: `${prefix}${path}` }))
  return [
    contender(ours.NAME, scan, expectSame(rows)),
    fetching(place, `whole objects, ${AT_ONCE} at once`, objects, AT_ONCE),
  ]
}

async function contendersOf(place: Place): Promise<Contender[]> {
  const { input, bucket, prefix, endpoint, only } = place
  const url = `s3://${bucket}/${prefix}`
  const opened = await createTrial(url, { s3: { ...OPTIONS, endpoint } })
  const options: ScanOptions = only === undefined ? {} : { tensors: only }
  const count = input.steps.length * (only === undefined ? input.tensors.length : 1)
  const scan = async (): Promise<number> => {
    let rows = 0
    for await (const { error } of opened.scan(options)) if (!error) rows++
    return rows
  }
  const before = opened.traffic
  await scan()
  const { getRequests, receivedBytes } = opened.traffic
  const cost = costText(getRequests - before.getRequests, receivedBytes - before.receivedBytes)
  const records = input.steps.flatMap(step => recordsOf(place, step))
  const objects = [...new Set(records.map(({ key }) => key))].map(key => ({ key }))
  return [
    contender(`${ours.NAME}, ${cost}`, scan, expectSame(count)),
    // As smdebug does. Left out where it would take minutes.
    ...(records.length > 100 && endpoint !== ENDPOINT
      ? []
      : [fetching(place, 'one GET a tensor, one after another', records, 1)]),
    fetching(place, `one GET a tensor, ${AT_ONCE} at once`, records, AT_ONCE),
    fetching(place, `whole objects, ${AT_ONCE} at once`, objects, AT_ONCE),
  ]
}

/** A plain program with the SDK that reads the same ranges. */
function fetching(place: Objects, name: string, pieces: readonly Piece[], atOnce: number): Contender {
  const { bucket, endpoint } = place
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: CREDENTIALS })
  const total = pieces.reduce((sum, { range, key }) => sum + (range?.[1] ?? lengthOf(place, key)), 0)
  const fetch = async (): Promise<number> => {
    let bytes = 0
    const waiting = pieces.values()
    const fetchAll = async () => {
      for (const { key, range } of waiting) {
        const Range = range && `bytes=${range[0]}-${range[0] + range[1] - 1}`
        const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key, ...(Range && { Range }) }))
        const { length } = await Body!.transformToByteArray()
        bytes += length
      }
    }
    await Promise.all(Array.from({ length: atOnce }, fetchAll))
    return bytes
  }
  return contender(`${name}, ${costText(pieces.length, total)}`, fetch, expectSame(total))
}

function recordsOf({ input, prefix, only }: Place, step: number): Piece[] {
  const { tensor_payload } = JSON.parse(readFileSync(join(input.dir, indexFilePath(step, 'worker_0')), 'utf8')) as {
    tensor_payload: { tensorname: string; start_idx: number; length: number }[]
  }
  return tensor_payload
    .filter(({ tensorname }) => only === undefined || tensorname === only)
    .map(({ start_idx, length }) => ({
      key: `${prefix}${eventFilePath(step, 'worker_0')}`,
      range: [start_idx, length] as const,
    }))
}

function lengthOf({ input, prefix }: Objects, key: string): number {
  return readFileSync(join(input.dir, key.slice(prefix.length))).length
}

function costText(requests: number, bytes: number): string {
  return `${requests} GET${requests === 1 ? '' : 's'}, ${(bytes / 1e6).toFixed(2)} MB`
}
