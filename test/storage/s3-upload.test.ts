/** Objects that are written in parts, to a server that fails as a real one can't be asked to. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Destination } from '#dist/storage/destination.js'
import { PART_BYTES } from '#dist/storage/s3/upload.js'
import { answerLost, type Fault, FaultyS3, failWith } from '../support/faulty-s3.js'

const LENGTH = 2 * PART_BYTES + 12_345
const CONTENT = Buffer.alloc(
  LENGTH,
  Uint8Array.from({ length: 251 }, (_, i) => i),
)
const KEY = 'trial/a/long.bin'

let s3: FaultyS3
let destination: Destination
beforeEach(async () => {
  s3 = await FaultyS3.start()
  destination = Destination.at('s3://bucket/trial', s3.options)
})
afterEach(async () => {
  await destination.close()
  await s3.stop()
})

/** In pieces that end where no part does. */
function* pieces(byteLength = LENGTH): Generator<Uint8Array> {
  for (let at = 0; at < byteLength; at += 1_000_003) yield CONTENT.subarray(at, Math.min(byteLength, at + 1_000_003))
}

const create = (byteLength?: number) => destination.create('a/long.bin', pieces(byteLength))
/** At the first of these requests. */
function failOnce(what: string, fault: Fault): void {
  let isLeft = true
  s3.writeFaultOf = one => {
    if (one !== what || !isLeft) return undefined
    isLeft = false
    return fault
  }
}

describe('an object', () => {
  it('is written in one request up to the length of a part', async () => {
    expect(await create(PART_BYTES)).toBe(PART_BYTES)
    expect(s3.written).toEqual(['PUT'])
    expect(s3.objects.get(KEY)!.equals(CONTENT.subarray(0, PART_BYTES))).toBe(true)
  })

  it('that is short takes little memory while it is written', async () => {
    const answers: (() => void)[] = []
    s3.writeFaultOf = () => (_, serve) => answers.push(serve)
    const before = process.memoryUsage().arrayBuffers
    const writing = Array.from({ length: 16 }, (_, i) => destination.replace(`${i}.json`, '{}'))
    await vi.waitFor(() => expect(answers).toHaveLength(16))
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * PART_BYTES)
    for (const answer of answers) answer()
    await Promise.all(writing)
  })

  it('is not taken for written where S3 names a condition that it has not', async () => {
    s3.writeFaultOf = () => failWith(412, 'PreconditionFailed')
    await expect(destination.replace('a.json', '{}')).rejects.toMatchObject({ fields: { status: 412 } })
  })

  it('that is longer comes in parts, and is there when they are complete', async () => {
    s3.writeFaultOf = what => {
      if (what === 'POST upload') expect(s3.objects.size).toBe(0)
      return undefined
    }
    expect(await create()).toBe(LENGTH)
    expect(s3.objects.get(KEY)!.equals(CONTENT)).toBe(true)
    expect([...s3.written].sort()).toEqual(['POST upload', 'POST uploads', 'PUT part 1', 'PUT part 2', 'PUT part 3'])
    expect(s3.uploads.size).toBe(0)
  })

  it.each(['POST uploads', 'PUT part 2', 'POST upload'])('survives a failure of %s', async what => {
    failOnce(what, failWith(503, 'SlowDown'))
    expect(await create()).toBe(LENGTH)
    expect(s3.objects.get(KEY)!.equals(CONTENT)).toBe(true)
    expect(s3.written.filter(one => one === what)).toHaveLength(2)
  })

  it.each(['PUT part 2', 'POST upload'])('survives a lost answer to %s', async what => {
    failOnce(what, answerLost)
    expect(await create()).toBe(LENGTH)
    expect(s3.objects.get(KEY)!.equals(CONTENT)).toBe(true)
    expect(s3.written).not.toContain('DELETE upload')
  })

  it.each(['PUT part 2', 'POST upload'])('leaves nothing behind where S3 refuses %s', async what => {
    s3.writeFaultOf = one => (one === what ? failWith(403, 'AccessDenied') : undefined)
    await expect(create()).rejects.toMatchObject({ name: 'StoreError', code: 'Denied' })
    expect(s3.written).toContain('DELETE upload')
    expect([s3.uploads.size, s3.objects.size]).toEqual([0, 0])
  })

  it('leaves nothing behind where its bytes end with an error', async () => {
    const broken = async function* () {
      yield* pieces(PART_BYTES + 1_000_000)
      throw new Error('no more')
    }
    await expect(destination.create('a/long.bin', broken())).rejects.toThrow('no more')
    expect([s3.uploads.size, s3.objects.size]).toEqual([0, 0])
  })

  it('that is there stays as it is', async () => {
    s3.objects.set(KEY, Buffer.from('first'))
    expect(await create()).toBe(null)
    expect(s3.objects.get(KEY)!.toString()).toBe('first')
    expect([s3.written.includes('POST upload'), s3.uploads.size]).toEqual([false, 0])
    // One that comes after it was looked for.
    s3.objects.delete(KEY)
    s3.writeFaultOf = what => {
      if (what === 'POST upload') s3.objects.set(KEY, Buffer.from('second'))
      return undefined
    }
    expect(await create()).toBe(null)
    expect(s3.objects.get(KEY)!.toString()).toBe('second')
    expect(s3.uploads.size).toBe(0)
  })

  it('that is there stays as it is on a server without conditions', async () => {
    s3.completesIfNew = false
    s3.objects.set(KEY, Buffer.from('first'))
    expect(await create()).toBe(null)
    expect(s3.objects.get(KEY)!.toString()).toBe('first')
  })
})
