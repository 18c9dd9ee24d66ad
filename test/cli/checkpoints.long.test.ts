/** The golden answers of checkpoints through the command line, on disk and on S3, and through the library on S3. */

import { readFileSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createTrial } from '#dist/index.js'
import { decodeAll, SMALL_FLOATS, type SmallFloat } from '../oracle/small-floats.js'
import {
  differences,
  differencesOf,
  type GoldenPlace,
  REDUCTIONS,
  type ReadRow,
} from '../support/checkpoint-answers.js'
import { CHECKPOINTS, goldenPlaces, hasCheckpoints } from '../support/checkpoints.js'
import { ENVIRONMENT, HAS_S3, makeBucket, OPTIONS, put, upload } from '../support/s3.js'
import { scratchDirectory } from '../support/scratch.js'
import { objects, trialscan } from './run.js'

const scratch = scratchDirectory('cli-checkpoints')

const ARRAYS: Readonly<Record<string, new (bytes: ArrayBuffer) => ArrayLike<number | bigint>>> = {
  f2: Uint16Array,
  f4: Float32Array,
  f8: Float64Array,
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  i8: BigInt64Array,
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  u8: BigUint64Array,
  b1: Uint8Array,
}

/** The elements of a .npy file that `dump` wrote. */
function numbersOf(file: string, dtype: string): (number | bigint)[] {
  const bytes = readFileSync(file)
  const start = 10 + bytes.readUInt16LE(8)
  const header = bytes.toString('latin1', 10, start)
  const [, descr] = /'descr': '[<|]([a-z]\d)'/.exec(header)!
  const data = Uint8Array.from(bytes.subarray(start))
  if (SMALL_FLOATS.includes(dtype as SmallFloat)) {
    return [...decodeAll(dtype as SmallFloat, data, data.length * (dtype === 'float4_e2m1fn' ? 2 : 1))]
  }
  const numbers = Array.from(new ARRAYS[descr!]!(data.buffer))
  return descr === 'f2' ? numbers.map(bits => float16(Number(bits))) : numbers
}

function float16(bits: number): number {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023]
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15))
}

/** How what `scan` and `dump` write differs from the answers. */
async function differencesOfCli(place: string, golden: GoldenPlace): Promise<string[]> {
  const reductions = REDUCTIONS.join()
  const scan = await trialscan('scan', place, '--reductions', reductions, '--format', 'jsonl')
  const rows = objects(scan.stdout).map(row => ({ ...row, reductions: row }) as unknown as ReadRow)
  const out = join(scratch, 'dumped')
  await trialscan('dump', place, '--out', out)
  const files = objects(readFileSync(join(out, 'index.jsonl'), 'utf8'))
  const keyOf = ({ tensor, step, worker }: Record<string, unknown>) => `${step} ${worker} ${tensor}`
  const byKey = new Map(files.map(file => [keyOf(file), file]))
  const wrong = await differencesOf(rows, golden, async row => {
    const file = byKey.get(keyOf({ ...row }))!
    return numbersOf(join(out, file.file as string), file.dtype as string)
  })
  rmSync(out, { recursive: true })
  return wrong
}

const isPublic = ({ place }: GoldenPlace) => place.startsWith('public/')

describe.runIf(hasCheckpoints)('golden answers', () => {
  const places = goldenPlaces().map(golden => [golden.place, golden] as const)

  it.each(places)('%s, on disk', async (_, golden) => {
    expect(await differencesOfCli(join(CHECKPOINTS, golden.place), golden)).toEqual([])
  })

  describe.runIf(HAS_S3)('on S3', () => {
    beforeAll(() => {
      Object.assign(process.env, { ...ENVIRONMENT, AWS_S3_FORCE_PATH_STYLE: 'true' })
    })

    it.each(places)('%s', async (_, golden) => {
      const bucket = await makeBucket()
      const local = join(CHECKPOINTS, golden.place)
      const isFile = statSync(local).isFile()
      if (isFile) await put(bucket, `at/${basename(local)}`, readFileSync(local))
      else await upload(local, bucket, `at/${basename(local)}/`)
      const url = `s3://${bucket}/at/${basename(local)}`
      const trial = await createTrial(url, { refresh: 'manual', s3: OPTIONS })
      expect(await differences(trial, golden)).toEqual([])
      expect(trial.problems).toEqual([])
      await trial.close()
      if (isPublic(golden)) return
      expect(await differencesOfCli(url, golden)).toEqual([])
    })
  })
})
