// CRC-32C at nearly the speed of memory, in WebAssembly, which has no instruction for it.
//
// Table lookups (slicing-by-16) take 4 GB/s and serve the shortest inputs. Others are *folded* first. P has multiples of few
// terms, x^(8·209) + x^(8·144) + x^(8·54) + x^(8·39) + x^(8·14) + 1 for one; adding such a multiple, times anything, to
// a message leaves its CRC as it is. That clears the message's first byte by XORing it into the bytes 65, 155, 170, 195
// and 209 further on, and so on byte by byte, until only the multiple's length is left. It takes only
// shuffles and XORs of 16-byte units: 27 GB/s for F209, as this multiple is called after its length, and 32 for F625.
//
//   input ──F625──▶ 46 units ──F209──▶ 14 units ──F130──▶ 9 units ──F47──▶ 3 units ──lookups──▶ register

import { BLOCK, fold } from './fold'
import { advance, advance8 } from './lookups'
import { foldShort } from './short'
import { multiply } from './tables'

/** Length from which F47 pays, and that from which the folds before it do (measured). */
const FOLD_SHORT_FROM: u32 = 80
const FOLD_FROM: u32 = 400

/**
 * Continues a CRC over more bytes. At least 128 bytes below them are readable, as the arena guarantees.
 * @param crc - of the bytes before; 0 at the start
 */
export function crc32c(data: usize, byteLength: u32, crc: u32): u32 {
  if (byteLength < FOLD_SHORT_FROM || data < BLOCK) return ~advance(data, byteLength, ~crc)
  return ~(byteLength < FOLD_FROM ? foldShort(data, byteLength, ~crc) : fold(data, byteLength, ~crc))
}

/** The CRC of the eight bytes of a little-endian u64. */
export function crc32cOfLength(low: u32, high: u32): u32 {
  return ~advance8(low, high, ~0)
}

/** Masks a CRC as TFRecord stores it, so that a CRC over data with CRCs in it stays meaningful. */
export function mask(crc: u32): u32 {
  return rotr(crc, 15) + 0xa282ead8
}

export function unmask(masked: u32): u32 {
  return rotl(masked - 0xa282ead8, 15)
}

/** The CRC of A‖B, from those of A and of B: A's moves up by B's length, that is by x^(8·|B|) modulo P. */
export function crc32cCombine(a: u32, b: u32, byteLengthB: f64): u32 {
  let square: u32 = 0x00800000 // x⁸
  for (let length = <u64>byteLengthB; length != 0; length >>= 1) {
    if (length & 1) a = multiply(a, square)
    square = multiply(square, square)
  }
  return a ^ b
}
