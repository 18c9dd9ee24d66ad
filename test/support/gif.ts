/** A reader of GIF files, as far as ours go: frames of the whole size, with one table of colours. */

export interface GifFrame {
  readonly delay: number
  /** A number of a colour for each pixel. */
  readonly pixels: Uint8Array
}

export interface Gif {
  readonly width: number
  readonly height: number
  readonly frames: readonly GifFrame[]
}

export function readGif(bytes: Uint8Array): Gif {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!/^GIF89a$/.test(Buffer.from(bytes.subarray(0, 6)).toString('latin1'))) throw new Error('no GIF')
  const [width, height] = [view.getUint16(6, true), view.getUint16(8, true)]
  const tableOf = (flags: number) => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0)
  let at = 13 + tableOf(bytes[10]!)
  let delay = 0
  const frames: GifFrame[] = []
  const blocks = () => {
    const parts: Uint8Array[] = []
    for (let size = bytes[at++]!; size > 0; size = bytes[at++]!) {
      parts.push(bytes.subarray(at, at + size))
      at += size
    }
    return Buffer.concat(parts)
  }
  for (;;) {
    const kind = bytes[at++]
    if (kind === 0x3b) return { width, height, frames }
    if (kind === 0x21) {
      const label = bytes[at++]
      const data = blocks()
      if (label === 0xf9) delay = data.readUInt16LE(1) * 10
    } else if (kind === 0x2c) {
      at += 9 + tableOf(bytes[at + 8]!)
      const bits = bytes[at++]!
      frames.push({ delay, pixels: unpacked(blocks(), bits, width * height) })
    } else throw new Error(`no block: ${kind} at ${at}`)
  }
}

/** LZW, as GIF has it. */
function unpacked(data: Uint8Array, bits: number, length: number): Uint8Array {
  const [clear, end] = [1 << bits, (1 << bits) + 1]
  const pixels = new Uint8Array(length)
  let words: number[][] = []
  let [size, at, bit, last] = [bits + 1, 0, 0, null as number[] | null]
  for (;;) {
    let code = 0
    for (let i = 0; i < size; i++, bit++) code |= ((data[bit >> 3]! >> (bit & 7)) & 1) << i
    if (code === end) {
      if (at !== length) throw new Error(`${at} of ${length} pixels`)
      return pixels
    }
    if (code === clear) {
      words = Array.from({ length: end + 1 }, (_, i) => [i])
      size = bits + 1
      last = null
      continue
    }
    const word: number[] = words[code] ?? [...last!, last![0]!]
    if (last !== null && words.length < 4096) words.push([...last, word[0]!])
    if (words.length === 1 << size && size < 12) size++
    pixels.set(word, at)
    at += word.length
    last = word
  }
}
