/** A trial in which every step is somebody's attempt to do harm. Each has a tensor `good` that can be read, if anything can. */

import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  collectionsFileText,
  encodeEvent,
  eventFilePath,
  frameRecord,
  indexFilePath,
  maskedCrc32c,
  varint,
} from '../../fixtures/event-writer.js'

export const WORKER = 'worker_0'

export interface Exhibit {
  readonly name: string
  make(directory: string, step: number): void
  /**
   * Where it shows. index: the step is one row without a tensor. record: one of two rows. value: both rows are right, the
   * value can't be had. fine: nothing is wrong.
   */
  readonly at: 'index' | 'record' | 'value' | 'fine'
  /** Of the error. */
  readonly code: string
  /** Nothing of the step can be read, `good` neither. */
  readonly isWhole?: boolean
  /** Of the tensor that is bad; default `bad`. */
  readonly tensor?: string
  /** What the message has to say. */
  readonly says?: RegExp
  /** Links and FIFOs are the local disk's. */
  readonly isLocal?: boolean
}

// ------------------------------------------------------------------------------------------------------ bytes of Events

export function concat(...pieces: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(pieces)
}

export function utf8(text: string): Uint8Array {
  return Buffer.from(text)
}

/** A length-delimited field; `claimed` is the length that it says it has. */
export function field(number: number, body: Uint8Array, claimed: number | bigint = body.length): Uint8Array {
  return concat(varint(number * 8 + 2), varint(claimed), body)
}

export function dimensions(...sizes: readonly (number | bigint)[]): Uint8Array {
  return concat(...sizes.map(size => field(2, concat(varint(8), varint(size)))))
}

const FLOAT32 = concat(varint(8), varint(1))
const STRING = concat(varint(8), varint(7))

/** An Event of one Value; what follows the tag are fields of the Value. */
export function eventOf(step: number, tag: string, ...value: readonly Uint8Array[]): Uint8Array {
  return concat(varint(16), varint(step), field(5, field(1, concat(field(1, utf8(tag)), ...value))))
}

export function tensorOf(...fields: readonly Uint8Array[]): Uint8Array {
  return field(8, concat(...fields))
}

function goodEvent(step: number, tag: string): Uint8Array {
  const tensor = { dtype: 'float32', shape: [2], values: [1, 2] } as const
  return encodeEvent({ wallTime: 1, step, tag, mode: 'TRAIN', modeStep: step, tensor })
}

// --------------------------------------------------------------------------------------------------------------- steps

/** An index entry, of which JSON is made as it stands: numbers may be text. */
export type Entry = Record<string, unknown>

interface StepOptions {
  readonly event?: Uint8Array
  readonly tensor?: string
  readonly entry?: Entry
  readonly meta?: Entry
  /** Makes the text of the index file. */
  readonly text?: (text: string) => string
  readonly worker?: string
}

/** A number, or anything else, as it is to stand in JSON. */
export class Raw {
  constructor(readonly text: string) {}
}

function json(value: unknown): string {
  const raws: string[] = []
  const text = JSON.stringify(value, (_, inner) => (inner instanceof Raw ? `@raw${raws.push(inner.text) - 1}@` : inner))
  return text.replace(/"@raw(\d+)@"/g, (_, i) => raws[Number(i)]!)
}

export function write(path: string, bytes: string | Uint8Array): string {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
  return path
}

export function writeStep(
  directory: string,
  step: number,
  { event, tensor = 'bad', entry = {}, meta = {}, text = same => same, worker = WORKER }: StepOptions = {},
): { readonly eventFile: string; readonly indexFile: string } {
  const [good, bad] = [frameRecord(goodEvent(step, 'good')), frameRecord(event ?? goodEvent(step, tensor))]
  const eventFile = write(join(directory, eventFilePath(step, worker)), concat(good, bad))
  const index = {
    meta: { mode: 'TRAIN', mode_step: step, event_file_name: eventFilePath(step, worker), ...meta },
    tensor_payload: [
      { tensorname: 'good', start_idx: 0, length: good.length },
      { tensorname: tensor, start_idx: good.length, length: bad.length, ...entry },
    ],
    shape_payload: [],
  }
  return { eventFile, indexFile: write(join(directory, indexFilePath(step, worker)), text(json(index))) }
}

export function writeCollections(directory: string, text = collectionsFileText({ all: { includeRegex: ['.*'] } }, 1)) {
  write(join(directory, 'collections/000000000/worker_0_collections.json'), text)
}

// ------------------------------------------------------------------------------------------------------------ exhibits

function indexed(name: string, code: string, options: StepOptions, says?: RegExp): Exhibit {
  return {
    name,
    code,
    at: 'index',
    make: (directory, step) => void writeStep(directory, step, options),
    ...(says && { says }),
  }
}

function pathed(name: string): Exhibit {
  return indexed(`event_file_name ${JSON.stringify(name)}`, 'UnsafePath', { meta: { event_file_name: name } })
}

function numbered(key: 'start_idx' | 'length', number: string, code = 'BadIndexFile'): Exhibit {
  return indexed(`${key} of ${number}`, code, { entry: { [key]: new Raw(number) } }, /whole number|an end below/)
}

function record(
  name: string,
  code: string,
  event: (step: number) => Uint8Array,
  at: Exhibit['at'] = 'record',
): Exhibit {
  return { name, code, at, make: (directory, step) => void writeStep(directory, step, { event: event(step) }) }
}

function shaped(name: string, code: string, sizes: readonly (number | bigint)[], content = new Uint8Array(8)): Exhibit {
  return record(`a shape ${name}`, code, step =>
    eventOf(step, 'bad', tensorOf(FLOAT32, field(2, dimensions(...sizes)), field(4, content))),
  )
}

function replaced(
  name: string,
  code: string,
  at: Exhibit['at'],
  replace: (files: { eventFile: string; indexFile: string }, directory: string) => void,
): Exhibit {
  const make = (directory: string, step: number): void => replace(writeStep(directory, step), directory)
  return { name, code, at, make, isLocal: true, isWhole: at === 'record' }
}

/** A link in place of a file, which is moved to where the link leads if that is nowhere yet. */
function link(target: string, path: string): void {
  rmSync(path, { recursive: true, force: true })
  symlinkSync(target, path)
}

/** A tensor of 10^12 elements in a hundred bytes. */
export function repeated(step: number, tag: string, ...sizes: readonly number[]): Uint8Array {
  const one = Buffer.alloc(4)
  one.writeFloatLE(1)
  return eventOf(step, tag, tensorOf(FLOAT32, field(2, dimensions(...sizes)), field(5, one)))
}

/** A record whose header claims a payload of that length, with the right checksum. */
function claiming(byteLength: bigint): (step: number) => Uint8Array {
  return step => {
    const frame = Buffer.from(frameRecord(goodEvent(step, 'bad')))
    frame.writeBigUInt64LE(byteLength)
    frame.writeUInt32LE(maskedCrc32c(frame.subarray(0, 8)), 8)
    return frame
  }
}

function framed(name: string, code: string, frame: (step: number) => Uint8Array): Exhibit {
  const make = (directory: string, step: number): void => {
    const good = frameRecord(goodEvent(step, 'good'))
    const { eventFile } = writeStep(directory, step)
    write(eventFile, concat(good, frame(step)))
  }
  return { name, code, at: 'record', make }
}

const NESTED = 100_000

export const EXHIBITS: readonly Exhibit[] = [
  ...['/etc/passwd', 'events/../../x', '..', 'events/a\0b', 's3://another-bucket/events/x', 'file:///etc/passwd'].map(
    pathed,
  ),
  ...['C:\\x', 'events\\x', 'https://host/x', ''].map(pathed),
  numbered('length', '9223372036854775808'),
  numbered('length', '1e308'),
  numbered('length', '-1'),
  numbered('length', '1.5'),
  numbered('length', '1e999'),
  numbered('length', '"98"'),
  numbered('start_idx', '9007199254740993'),
  numbered('start_idx', '-1'),
  numbered('start_idx', '1e21'),
  numbered('start_idx', '9007199254740990'),
  indexed('mode_step of -2', 'BadIndexFile', { meta: { mode_step: -2 } }),
  indexed('mode_step of 1e21', 'BadIndexFile', { meta: { mode_step: 1e21 } }),
  indexed('a mode called __proto__', 'BadIndexFile', { meta: { mode: '__proto__' } }),
  indexed(`JSON nested ${NESTED} deep`, 'BadIndexFile', {
    text: text => text.replace('"shape_payload":[]', `"shape_payload":${'['.repeat(NESTED)}${']'.repeat(NESTED)}`),
  }),
  indexed('JSON of 2 MB nested deep', 'BadIndexFile', { text: () => `{"meta":${'['.repeat(2_000_000)}` }, /100 deep/),
  indexed(
    'JSON of ten million values',
    'BadIndexFile',
    { text: text => text.replace('"shape_payload":[]', `"shape_payload":[${'0,'.repeat(10_000_000)}0]`) },
    /byte \d+.*at most 8388608 values/,
  ),
  indexed(
    'a saved shape with a negative dimension',
    'BadIndexFile',
    { text: text => text.replace('"shape_payload":[]', '"shape_payload":[{"tensorname":"s","shape":[2,-1]}]') },
    /shape\[1\]/,
  ),
  indexed(
    'a saved shape of a million dimensions',
    'BadIndexFile',
    {
      text: text =>
        text.replace('"shape_payload":[]', `"shape_payload":[{"tensorname":"s","shape":[${'1,'.repeat(999_999)}1]}]`),
    },
    /at most 254 dimensions, got 1000000/,
  ),
  {
    name: 'duplicate keys: the last one counts, as it does in Python',
    code: '',
    at: 'fine',
    make: (directory, step) =>
      void writeStep(directory, step, { text: text => text.replace('{"meta"', '{"meta":{"mode":"EVAL"},"meta"') }),
  },
  replaced('an index file of 1 GiB', 'TooLarge', 'index', ({ indexFile }) => truncateSync(indexFile, 2 ** 30)),
  replaced('an index file that is a link out of the trial', 'Denied', 'index', ({ indexFile }, directory) => {
    const outside = `${directory}-outside.json`
    renameSync(indexFile, outside)
    link(outside, indexFile)
  }),
  replaced('an index file that is a link to /dev/zero', 'Denied', 'index', ({ indexFile }) =>
    link('/dev/zero', indexFile),
  ),
  replaced('an index file that is a link to itself', 'Unavailable', 'index', ({ indexFile }) =>
    link(indexFile, indexFile),
  ),
  replaced('an index file that is a FIFO', 'NotAFile', 'index', ({ indexFile }) => {
    rmSync(indexFile)
    execFileSync('mkfifo', [indexFile])
  }),
  replaced('an index file that is a directory', 'NotAFile', 'index', ({ indexFile }) => {
    rmSync(indexFile)
    mkdirSync(indexFile)
  }),

  ...['1000000000000000', '9007199254740000', '0', '15', '4294967296'].map(
    (length): Exhibit => ({
      name: `a record of ${length} bytes`,
      code: 'LengthMismatch',
      at: 'record',
      make: (directory, step) => void writeStep(directory, step, { entry: { length: Number(length) } }),
    }),
  ),
  framed('a header that claims 2^63 bytes', 'LengthMismatch', claiming(2n ** 63n)),
  framed('a header that claims 2^64 - 1 bytes', 'LengthMismatch', claiming(2n ** 64n - 1n)),
  framed('a header that claims its length and 2^32', 'LengthMismatch', step =>
    claiming(2n ** 32n + BigInt(goodEvent(step, 'bad').length))(step),
  ),
  record('a tag that claims 4 GiB', 'MalformedEvent', step =>
    concat(varint(16), varint(step), field(5, field(1, field(1, utf8('bad'), 2 ** 32 - 1)))),
  ),
  record('a tag that claims 2^63 bytes', 'MalformedEvent', step =>
    concat(varint(16), varint(step), field(5, field(1, field(1, utf8('bad'), 2n ** 63n)))),
  ),
  record('a content that claims 2^32 + 8 bytes', 'MalformedEvent', step =>
    eventOf(step, 'bad', tensorOf(FLOAT32, field(2, dimensions(2)), field(4, new Uint8Array(8), 2n ** 32n + 8n))),
  ),
  record('another tensor under the name', 'TagMismatch', step => goodEvent(step, 'other')),
  record('another step', 'StepMismatch', step => goodEvent(step + 1, 'bad')),
  record('a shape that claims 10^9 dimensions', 'MalformedEvent', step =>
    eventOf(step, 'bad', tensorOf(FLOAT32, field(2, dimensions(1, 1), 2_000_000_000))),
  ),
  shaped('of 255 dimensions', 'BadShape', new Array(255).fill(1)),
  shaped('of 10,000 dimensions', 'BadShape', new Array(10_000).fill(1)),
  shaped('with a negative dimension', 'BadShape', [2, -1]),
  shaped('with 2^63 and 0', 'BadShape', [2n ** 63n, 0], new Uint8Array(0)),
  shaped('with 2^60 and 0', 'BadShape', [2n ** 60n, 0], new Uint8Array(0)),
  shaped('of product 2^64 + 2', 'BadShape', [2n ** 32n, 2n ** 32n, 1]),
  shaped('of product 2^54', 'BadShape', [2 ** 27, 2 ** 27]),
  shaped('of product 2^32 + 2, which is 2 in 32 bits', 'ShapeMismatch', [2 ** 31 + 1, 2]),
  shaped('of product 2^30, 2^32 bytes', 'ShapeMismatch', [2 ** 15, 2 ** 15], new Uint8Array(0)),
  shaped('of infinitely many elements', 'BadShape', new Array(254).fill(2 ** 53)),
  shaped('of infinity times zero elements', 'BadShape', [...new Array(253).fill(2 ** 53), 0], new Uint8Array(0)),
  {
    ...shaped('of no elements and 10^12 channels', '', [0, 10 ** 12], new Uint8Array(0)),
    at: 'fine',
  },
  record('one value that stands for 10^12', 'ValueTooLarge', step => repeated(step, 'bad', 10 ** 6, 10 ** 6), 'value'),
  record('one value that stands for 2^30', 'ValueTooLarge', step => repeated(step, 'bad', 2 ** 15, 2 ** 15), 'value'),
  record(
    'one string that stands for 10^9',
    'ValueTooLarge',
    step => eventOf(step, 'bad', tensorOf(STRING, field(2, dimensions(10 ** 9)), field(8, utf8('x')))),
    'value',
  ),
  record(
    'a long string that stands for a million',
    'ValueTooLarge',
    step => eventOf(step, 'bad', tensorOf(STRING, field(2, dimensions(10 ** 6)), field(8, new Uint8Array(10_000)))),
    'value',
  ),
  replaced('an event file that is a link out of the trial', 'Denied', 'record', ({ eventFile }, directory) => {
    const outside = `${directory}-outside.tfevents`
    renameSync(eventFile, outside)
    link(outside, eventFile)
  }),
  replaced('an event file that is a link to /dev/zero', 'Denied', 'record', ({ eventFile }) =>
    link('/dev/zero', eventFile),
  ),
  replaced('an event file that is a link to itself', 'Unavailable', 'record', ({ eventFile }) =>
    link(eventFile, eventFile),
  ),
  replaced('an event file that is a FIFO', 'NotAFile', 'record', ({ eventFile }) => {
    rmSync(eventFile)
    execFileSync('mkfifo', [eventFile])
  }),
  replaced('an event file that is a directory', 'NotAFile', 'record', ({ eventFile }) => {
    rmSync(eventFile)
    mkdirSync(eventFile)
  }),
  replaced('events of a directory that is a link out of the trial', 'Denied', 'record', ({ eventFile }, directory) => {
    const outside = `${directory}-outside`
    renameSync(dirname(eventFile), outside)
    link(outside, dirname(eventFile))
  }),
  replaced('an event file that is a hard link', '', 'fine', ({ eventFile }, directory) => {
    linkSync(eventFile, `${directory}-hard.tfevents`)
  }),
  replaced('an event file that is a link within the trial', '', 'fine', ({ eventFile }) => {
    renameSync(eventFile, `${eventFile}.there`)
    link(`${eventFile}.there`, eventFile)
  }),

  ...[
    '__proto__',
    'constructor',
    'a\nb\r\x1b[2J\x1b]0;owned\x07\u009b31m',
    'x\u202egpj.exe\u2066\u200f',
    '\ud800',
    '../../x',
    '',
  ].map(
    (tensor): Exhibit => ({
      name: `a tensor called ${JSON.stringify(tensor)}`,
      code: '',
      at: 'fine',
      tensor,
      make: (directory, step) => void writeStep(directory, step, { tensor }),
    }),
  ),
]

export interface Museum {
  readonly directory: string
  /** The step of each exhibit. */
  readonly steps: ReadonlyMap<string, number>
}

/** @param exhibits each gets a step, from 1 on; before and behind them is a step in which all is well */
export function makeMuseum(directory: string, exhibits: readonly Exhibit[]): Museum {
  writeCollections(directory)
  const steps = new Map<string, number>()
  writeStep(directory, 0)
  for (const [i, exhibit] of exhibits.entries()) {
    steps.set(exhibit.name, i + 1)
    exhibit.make(directory, i + 1)
  }
  writeStep(directory, exhibits.length + 1)
  writeFileSync(join(directory, 'training_job_end.ts'), '')
  return { directory, steps }
}
