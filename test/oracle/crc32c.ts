/** Castagnoli's polynomial, reflected. */
const POLYNOMIAL = 0x82f63b78

/** CRC-32C bit by bit, as it is defined, continued over the bytes after `crc`. */
export function crc32c(bytes: Uint8Array, crc = 0): number {
  let register = ~crc
  for (const byte of bytes) {
    register ^= byte
    for (let bit = 0; bit < 8; bit++) register = register & 1 ? (register >>> 1) ^ POLYNOMIAL : register >>> 1
  }
  return ~register >>> 0
}

/** The CRCs of all the beginnings of some bytes, by length. */
export function crc32cOfPrefixes(bytes: Uint8Array): Uint32Array {
  const crcs = new Uint32Array(bytes.length + 1)
  for (let length = 0; length < bytes.length; length++) {
    crcs[length + 1] = crc32c(bytes.subarray(length, length + 1), crcs[length])
  }
  return crcs
}
