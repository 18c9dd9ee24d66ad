/** TensorBoard's event files as its own definitions say (tensorboard.proto), decoded by protobufjs and not by us. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, inflateSync } from 'node:zlib'
import protobuf from 'protobufjs'
import { expect } from 'vitest'
import { ROOT } from './golden.js'

const { root } = protobuf.parse(readFileSync(join(ROOT, 'test/support/tensorboard.proto'), 'utf8'), { keepCase: true })
const Event = root.lookupType('Event')

export interface ProtoHistogram {
  readonly min?: number
  readonly max?: number
  readonly num?: number
  readonly sum?: number
  readonly sum_squares?: number
  readonly bucket_limit: readonly number[]
  readonly bucket: readonly number[]
}

export interface ProtoValue {
  readonly tag: string
  /** Which of the fields is set. */
  readonly value: 'simple_value' | 'image' | 'histo' | 'tensor'
  readonly simple_value: number
  readonly histo: ProtoHistogram
  readonly image: {
    readonly height: number
    readonly width: number
    readonly colorspace: number
    readonly encoded_image_string: Uint8Array
  }
}

export interface ProtoEvent {
  readonly wall_time?: number
  readonly step?: number
  readonly file_version?: string
  readonly summary?: { readonly value: readonly ProtoValue[] }
}

/** The payloads of the records of a file. */
export function payloadsOf(bytes: Buffer): Buffer[] {
  const payloads: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at))
    payloads.push(bytes.subarray(at + 12, at + 12 + length))
    at += length + 16
  }
  return payloads
}

export function encodeProto(event: object): Uint8Array {
  return Event.encode(Event.fromObject(event)).finish()
}

export function decodeProto(payload: Uint8Array): ProtoEvent {
  return Event.toObject(Event.decode(payload), { longs: Number, oneofs: true, arrays: true }) as ProtoEvent
}

/** The events of each run below a directory, by its name. */
export function runsBelow(directory: string): Map<string, ProtoEvent[]> {
  const runs = new Map<string, ProtoEvent[]>()
  if (!existsSync(directory)) return runs
  for (const path of (readdirSync(directory, { recursive: true }) as string[]).sort()) {
    if (!path.includes('tfevents')) continue
    const run = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.'
    const events = payloadsOf(readFileSync(join(directory, path))).map(decodeProto)
    runs.set(run, [...(runs.get(run) ?? []), ...events])
  }
  return runs
}

/** The pixels of a PNG whose rows are not filtered. */
export function pixelsOf(png: Uint8Array): number[] {
  const bytes = Buffer.from(png)
  expect(bytes.subarray(0, 8)).toEqual(Buffer.from('89504e470d0a1a0a', 'hex'))
  const parts = new Map<string, Buffer>()
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    const named = bytes.subarray(at + 4, at + 8 + length)
    expect(bytes.readUInt32BE(at + 8 + length)).toBe(crc32(named))
    parts.set(named.toString('latin1', 0, 4), named.subarray(4))
    at += length + 12
  }
  expect([...parts.keys()]).toEqual(['IHDR', 'IDAT', 'IEND'])
  const rows = inflateSync(parts.get('IDAT')!)
  const rowLength = rows.length / parts.get('IHDR')!.readUInt32BE(4)
  return [...rows].filter((byte, i) => {
    if (i % rowLength === 0) expect(byte).toBe(0)
    return i % rowLength !== 0
  })
}
