/** The files of torch.save since 1.6: a ZIP of a pickle and storages, all stored, as places in the file. */

import { contentStart, LOCAL_BYTES, readZipDirectory, STORED, type ZipMember } from '../../array/zip-directory.js'
import { torchFault } from './fault.js'
import type { WindowedFile } from './window.js'

const PICKLE = 'data.pkl'
const MAX_PICKLE_BYTES = 2 ** 30
/** torch aligns the content of members to that, unless told otherwise. */
const ALIGNMENT = 64
/** The least that torch pads a header with. */
const PADDING_BYTES = 4
const DESCRIBED = 8
/** Descriptors behind contents, without and with ZIP64. */
const DESCRIPTOR_BYTES = [16, 24]
/** The number of headers that are read in parallel, if they have to be read. */
const READ_AT_ONCE = 64

/** A storage, as a range of the file. */
export interface StoragePlace {
  readonly start: number
  readonly byteLength: number
}

export interface TorchArchive {
  readonly pickle: Uint8Array
  /** The start of the pickle in the file. */
  readonly pickleStart: number
  /** The name of the pickle in errors. */
  readonly pickleUrl: string
  /** The places of storages by key; an error for one that can't be read; no entry for one that is missing. */
  places(keys: readonly string[]): Promise<ReadonlyMap<string, StoragePlace | Error>>
}

/** Reads the directory of an archive. @param base the start of the archive in the file @throws FormatError; StoreError */
export async function readTorchArchive(file: WindowedFile, base = 0): Promise<TorchArchive> {
  const { url } = file
  const { members, offset: directoryStart } = await readZipDirectory(file)
  const byName = new Map<string, ZipMember>()
  for (const member of members) {
    if (byName.has(member.name)) {
      throw torchFault(
        url,
        base + member.offset,
        'each name once',
        `${JSON.stringify(member.name.slice(0, 200))} again`,
      )
    }
    byName.set(member.name, member)
  }
  const pickles = members.filter(({ name }) => name.endsWith(`/${PICKLE}`) || name === PICKLE)
  const [pickle] = pickles
  if (pickle === undefined || pickles.length > 1) {
    const got = pickle === undefined ? 'none' : `${pickles.length} of them`
    throw torchFault(url, base, `a file of torch.save, which has one member ${PICKLE}`, got)
  }
  const prefix = pickle.name.slice(0, -PICKLE.length)
  if (byName.has(`${prefix}constants.pkl`)) {
    const got = 'TorchScript: load it with torch.jit.load, and save its state_dict()'
    throw torchFault(url, base, 'tensors of torch.save', got)
  }
  const ends = endsOf(members, directoryStart)
  const order = byName.get(`${prefix}byteorder`)
  if (order !== undefined) {
    const text = new TextDecoder().decode((await contentOf(file, order, base, 16)).bytes)
    if (text !== 'little') throw torchFault(url, base + order.offset, 'little-endian elements', JSON.stringify(text))
  }
  const { bytes, start } = await contentOf(file, pickle, base, MAX_PICKLE_BYTES)
  return {
    pickle: bytes,
    pickleStart: base + start,
    pickleUrl: `${url}: ${pickle.name}`,

    async places(keys) {
      const places = new Map<string, StoragePlace | Error>()
      const unknown: [string, ZipMember][] = []
      for (const key of keys) {
        const member = byName.get(`${prefix}data/${key}`)
        if (member === undefined) continue
        const fault = faultOf(url, member, base)
        if (fault !== null) places.set(key, fault)
        else {
          const start = alignedStart(member, ends.get(member)!)
          if (start === null) unknown.push([key, member])
          else places.set(key, { start: base + start, byteLength: member.byteLength })
        }
      }
      for (let i = 0; i < unknown.length; i += READ_AT_ONCE) {
        await Promise.all(
          unknown.slice(i, i + READ_AT_ONCE).map(async ([key, member]) => {
            const start = await contentStart(file, member).catch((error: Error) => error)
            places.set(key, start instanceof Error ? start : { start: base + start, byteLength: member.byteLength })
          }),
        )
      }
      return places
    },
  }
}

/** Why the content of a member can't be taken as it lies; null: it can. */
function faultOf(url: string, { name, method, fault, offset, byteLength, compressedLength }: ZipMember, base: number) {
  if (fault !== null) return fault
  if (method === STORED && byteLength === compressedLength) return null
  const got = 'compressed bytes: unpack the file with unzip, and pack it again with zip -0'
  return torchFault(url, base + offset, `${name} as torch.save stores it`, got)
}

async function contentOf(
  file: WindowedFile,
  member: ZipMember,
  base: number,
  limit: number,
): Promise<{ readonly bytes: Uint8Array; readonly start: number }> {
  const { url } = file
  const { name, offset, byteLength } = member
  const fault = faultOf(url, member, base)
  if (fault !== null) throw fault
  if (byteLength > limit) throw torchFault(url, base + offset, `at most ${limit} bytes of ${name}`, `${byteLength}`)
  // The header and what follows, in one read.
  await file.read(offset, LOCAL_BYTES + 4 * ALIGNMENT + name.length + byteLength)
  const start = await contentStart(file, member)
  const bytes = await file.read(start, byteLength)
  if (bytes.length < byteLength) {
    throw torchFault(url, base + start, `${byteLength} bytes of ${name}`, `${bytes.length} up to the end of the file`)
  }
  return { bytes, start }
}

/** The end of each member: the start of what follows it. */
function endsOf(members: readonly ZipMember[], directoryStart: number): ReadonlyMap<ZipMember, number> {
  const sorted = [...members].sort((a, b) => a.offset - b.offset)
  return new Map(sorted.map((member, i) => [member, sorted[i + 1]?.offset ?? directoryStart]))
}

/**
 * The place where torch puts a member's content, if what lies around it agrees; null: its header has to be read. A read for
 * each of a thousand storages would take as long as the rest.
 */
function alignedStart({ name, offset, flags, compressedLength }: ZipMember, end: number): number | null {
  const unaligned = offset + LOCAL_BYTES + Buffer.byteLength(name) + PADDING_BYTES
  const start = Math.ceil(unaligned / ALIGNMENT) * ALIGNMENT
  const behind = end - start - compressedLength
  const isPlausible = (flags & DESCRIBED) === 0 ? behind === 0 : DESCRIPTOR_BYTES.includes(behind)
  return isPlausible ? start : null
}
