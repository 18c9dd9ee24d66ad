/** The buffers of a reply that are transferred to the calling thread. */

/** The buffers of a reply's columns. */
export function buffersOf(reply: unknown): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>()
  collectBuffers(reply, buffers)
  return [...buffers]
}

/**
 * Collects buffers. A view of a part of a buffer is copied, since others use the rest; a reply has no view of the core's memory
 * (docs/design/core.md).
 * @param seen lists that several parts of the reply share
 */
function collectBuffers(part: unknown, buffers: Set<ArrayBuffer>, seen = new Set<unknown>()): void {
  if (typeof part !== 'object' || part === null) return
  if (ArrayBuffer.isView(part)) {
    const { buffer, byteLength } = part
    if (buffer instanceof ArrayBuffer && byteLength > 0 && byteLength === buffer.byteLength) buffers.add(buffer)
    return
  }
  if (Array.isArray(part)) {
    // A list of numbers or names has no buffers.
    if ((part.length > 0 && typeof part[0] !== 'object') || seen.has(part)) return
    seen.add(part)
  }
  for (const value of Object.values(part)) collectBuffers(value, buffers, seen)
}
