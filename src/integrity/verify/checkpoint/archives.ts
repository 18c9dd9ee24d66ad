/** Verifies ZIP archives (of torch and numpy): each stored member against the CRC-32 in the directory. */

import { crc32 } from 'node:zlib'
import type { FormatError } from '../../../base/errors.js'
import { sortedInTurns } from '../../../base/turns.js'
import {
  contentStart,
  isZip,
  readZipDirectory,
  STORED,
  type ZipMember,
  type ZipSource,
} from '../../../format/array/zip-directory.js'
import type { ArchivePlace } from '../../../format/checkpoint/stored-tensor.js'
import type { Store } from '../../../storage/store.js'
import type { Findings } from '../findings.js'

const CHUNK_BYTES = 4 << 20

/**
 * Reads every member of each archive once, and of a place that holds none, nothing. An archive that begins in another is reported and left
 * out, so that no bytes are read many times. Problems of its directory were reported when it was opened, those of its members' own
 * headers are reported here.
 * @param hasChecksums gets the paths of what was read: true if all members of the file have checksums
 */
export async function checkArchives(
  store: Store,
  places: readonly ArchivePlace[],
  hasChecksums: Map<string, boolean>,
  findings: Findings,
  signal?: AbortSignal,
): Promise<void> {
  const endOf = ({ startByte, byteLength = Number.POSITIVE_INFINITY }: ArchivePlace) => startByte + byteLength
  const inOrder = await sortedInTurns(places, (a, b) =>
    a.path !== b.path ? (a.path < b.path ? -1 : 1) : a.startByte - b.startByte,
  )
  let last: ArchivePlace | undefined
  let other: ArchivePlace | undefined
  for (const place of inOrder) {
    signal?.throwIfAborted()
    const { path, startByte } = place
    // All tensors of a safetensors file have one place.
    if (other?.path === path && other.startByte === startByte) continue
    const around = last?.path === path && startByte < endOf(last) ? last : undefined
    if (around?.startByte === startByte && endOf(around) === endOf(place)) continue
    if (!(await isArchive(store, place))) {
      other = place
      hasChecksums.set(path, false)
    } else if (around === undefined) {
      last = place
      const isGuarded = await checkArchive(store, place, findings, signal)
      hasChecksums.set(path, isGuarded && hasChecksums.get(path) !== false)
    } else {
      findings.tell('problem', 'BadCheckpointFile', path, () => ({
        offset: startByte,
        expected: 'archives that do not overlap',
        found: `one from byte ${startByte} up to ${endOf(place)}, and one from ${around.startByte} up to ${endOf(around)}`,
        lost: 'the checksums of the former are not checked',
      }))
    }
  }
}

async function isArchive(store: Store, { path, startByte, byteLength = 4 }: ArchivePlace): Promise<boolean> {
  const head = new Uint8Array(Math.min(4, byteLength))
  try {
    return isZip(head.subarray(0, await store.readInto(path, startByte, head)))
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'StoreError') throw error
    return false
  }
}

/** Reads every member of an archive once. @returns true if the members have checksums */
async function checkArchive(
  store: Store,
  { path, startByte: base, byteLength: given }: ArchivePlace,
  findings: Findings,
  signal?: AbortSignal,
): Promise<boolean> {
  const read = async (startByte: number, byteLength: number): Promise<Uint8Array> => {
    const bytes = new Uint8Array(byteLength)
    const length = await store.readInto(path, base + startByte, bytes)
    return bytes.subarray(0, length)
  }
  try {
    const byteLength = given ?? (await store.byteLength(path)) - base
    const source: ZipSource = { url: store.url(path), byteLength, read }
    const { members } = await readZipDirectory(source)
    const stored = members.filter(
      ({ method, fault, byteLength }) => method === STORED && fault === null && byteLength > 0,
    )
    const wrong: { readonly member: ZipMember; readonly start: number; readonly crc: number }[] = []
    let broken = 0
    for (const member of stored) {
      try {
        const start = await contentStart(source, member)
        const crc = await crcOf(source, start, Math.min(member.byteLength, member.compressedLength), signal)
        if (crc !== member.crc) wrong.push({ member, start, crc })
      } catch (error) {
        if (!isFormatError(error)) throw error
        broken++
        tellBroken(path, base + member.offset, member, error, findings)
      }
    }
    const readable = stored.length - broken
    if (stored.length > 1 && readable > 0 && wrong.length === readable) {
      findings.note({
        code: 'NoChecksums',
        file: path,
        expected: 'checksums of members',
        found: `none that is right, of ${readable} members`,
      })
      return false
    }
    for (const { member, start, crc } of wrong) {
      findings.problem({
        code: 'BadMemberChecksum',
        file: path,
        offset: base + start,
        expected: `CRC-32 ${hex(member.crc)} of ${JSON.stringify(member.name.slice(0, 200))}`,
        found: hex(crc),
        lost: 'what lies in that member can not be trusted',
      })
    }
    return broken === 0
  } catch (error) {
    if (!isFormatError(error) && !(error instanceof Error && error.name === 'StoreError')) throw error
    return false
  } finally {
    store.release?.()
  }
}

function isFormatError(error: unknown): error is FormatError {
  return error instanceof Error && error.name === 'FormatError'
}

/** Reports a member without a header, unless that was reported when the archive was opened. */
function tellBroken(path: string, offset: number, member: ZipMember, error: FormatError, findings: Findings): void {
  if (findings.told.problems.some(problem => problem.file === path && problem.offset === offset)) return
  const { expected, got } = error.fields
  findings.problem({
    code: 'BadCheckpointFile',
    file: path,
    offset,
    expected: String(expected),
    found: String(got),
    lost: `the checksum of ${JSON.stringify(member.name.slice(0, 200))} is not checked`,
  })
}

async function crcOf(
  { read }: ZipSource,
  start: number,
  byteLength: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  let crc = 0
  for (let at = 0; at < byteLength; at += CHUNK_BYTES) {
    signal?.throwIfAborted()
    crc = crc32(await read(start + at, Math.min(CHUNK_BYTES, byteLength - at)), crc)
  }
  return crc
}

function hex(crc: number): string {
  return `0x${crc.toString(16).padStart(8, '0')}`
}
