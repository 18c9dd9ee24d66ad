/** The first bytes of files of torch.save before 1.6, apart from their reader, which is loaded on demand. */

/** The number 0x1950a86a20f9469cfc6c, and the end of its pickle. */
const MAGIC = [0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e]
const PROTO = 0x80
const PROTOCOLS = [2, 3, 4, 5]
/** The frame of that length in front of it, from protocol 4 on, unless the pickle is too short for one. */
const FRAME = [0x95, MAGIC.length, 0, 0, 0, 0, 0, 0, 0]

export function isLegacyTorch(head: Uint8Array): boolean {
  if (head[0] !== PROTO || !PROTOCOLS.includes(head[1]!)) return false
  const isAt = (at: number, bytes: readonly number[]) => bytes.every((byte, i) => head[at + i] === byte)
  return isAt(2, MAGIC) || (isAt(2, FRAME) && isAt(2 + FRAME.length, MAGIC))
}
