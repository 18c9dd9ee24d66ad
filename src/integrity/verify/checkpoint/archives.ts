/** Verifies ZIP archives (of torch and numpy): each stored member against the CRC-32 in the directory. */

import { crc32 } from 'node:zlib'
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

/** Reads every member of an archive once; of a place that holds none, nothing. Problems of its directory were reported when it was opened. */
export async function checkArchive(
  store: Store,
  { path, startByte: base, byteLength: given }: ArchivePlace,
  findings: Findings,
): Promise<void> {
  const read = async (startByte: number, byteLength: number): Promise<Uint8Array> => {
    const bytes = new Uint8Array(byteLength)
    const length = await store.readInto(path, base + startByte, bytes)
    return bytes.subarray(0, length)
  }
  try {
    const byteLength = given ?? (await store.byteLength(path)) - base
    if (!isZip(await read(0, Math.min(4, byteLength)))) return
    const source: ZipSource = { url: store.url(path), byteLength, read }
    const { members } = await readZipDirectory(source)
    const stored = members.filter(
      ({ method, fault, byteLength }) => method === STORED && fault === null && byteLength > 0,
    )
    const wrong: { readonly member: ZipMember; readonly start: number; readonly crc: number }[] = []
    for (const member of stored) {
      const start = await contentStart(source, member)
      const crc = await crcOf(source, start, member.byteLength)
      if (crc !== member.crc) wrong.push({ member, start, crc })
    }
    if (stored.length > 1 && wrong.length === stored.length) {
      findings.note({
        code: 'NoChecksums',
        file: path,
        expected: 'checksums of members',
        found: `none that is right, of ${stored.length} members`,
      })
      return
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
  } catch (error) {
    if (!(error instanceof Error) || (error.name !== 'StoreError' && error.name !== 'FormatError')) throw error
  } finally {
    store.release?.()
  }
}

async function crcOf({ read }: ZipSource, start: number, byteLength: number): Promise<number> {
  let crc = 0
  for (let at = 0; at < byteLength; at += CHUNK_BYTES) {
    crc = crc32(await read(start + at, Math.min(CHUNK_BYTES, byteLength - at)), crc)
  }
  return crc
}

function hex(crc: number): string {
  return `0x${crc.toString(16).padStart(8, '0')}`
}
