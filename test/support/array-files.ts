/** Files of arrays, made as their formats say. */

import { crc32, deflateRawSync } from 'node:zlib'

/** A .npy file, as numpy's format says. */
export function npy(header: string, content: Uint8Array, version = 1): Buffer {
  const prefix = Buffer.from([0x93, ...Buffer.from('NUMPY'), version, 0])
  const length = Buffer.alloc(version === 1 ? 2 : 4)
  if (version === 1) length.writeUInt16LE(header.length)
  else length.writeUInt32LE(header.length)
  return Buffer.concat([prefix, length, Buffer.from(header, 'latin1'), content])
}

export const of = (descr: string, shape: string, fortran = 'False') =>
  `{'descr': '${descr}', 'fortran_order': ${fortran}, 'shape': ${shape}, }   \n`

export interface Entry {
  readonly name: string
  readonly content: Uint8Array
  readonly isDeflated?: boolean
  readonly claims?: {
    readonly byteLength?: number
    readonly crc?: number
    readonly offset?: number
    readonly flags?: number
  }
}

export function zip(entries: readonly Entry[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const { name, content, isDeflated = false, claims = {} } of entries) {
    const packed = isDeflated ? deflateRawSync(content) : Buffer.from(content)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50)
    local.writeUInt16LE(name.length, 26)
    const central = Buffer.alloc(46)
    central.writeUInt32LE(0x02014b50)
    central.writeUInt16LE(claims.flags ?? 0, 8)
    central.writeUInt16LE(isDeflated ? 8 : 0, 10)
    central.writeUInt32LE(claims.crc ?? crc32(content), 16)
    central.writeUInt32LE(packed.length, 20)
    central.writeUInt32LE(claims.byteLength ?? content.length, 24)
    central.writeUInt16LE(name.length, 28)
    central.writeUInt32LE(claims.offset ?? at, 42)
    parts.push(local, Buffer.from(name), packed)
    directory.push(central, Buffer.from(name))
    at += 30 + name.length + packed.length
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(listed.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...parts, listed, end])
}

export function safetensors(header: string, content = new Uint8Array(0)): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(header)))
  return Buffer.concat([length, Buffer.from(header), content])
}
