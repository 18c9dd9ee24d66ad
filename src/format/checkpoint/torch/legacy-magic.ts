/** How files of torch.save before 1.6 begin: apart from what reads them, which is loaded when there is one. */

/** A pickle of the number 0x1950a86a20f9469cfc6c. */
const MAGIC = [0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e]

export function isLegacyTorch(head: Uint8Array): boolean {
  return head.length >= MAGIC.length && MAGIC.every((byte, i) => head[i] === byte)
}
