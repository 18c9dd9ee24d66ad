/** A queue of bytes on their way to a store. */

/** The length from which pieces are passed on unchanged; shorter ones are collected. */
const LONG_BYTES = 256 << 10

interface Chunk {
  readonly bytes: Uint8Array
  /** Called when the store has written the chunk. */
  readonly written?: () => void
}

export class Pipe implements AsyncIterable<Uint8Array> {
  readonly #limit: number
  readonly #chunks: Chunk[] = []
  #byteLength = 0
  #gathered: Uint8Array | null = null
  #gatheredLength = 0
  #isEnded = false
  #failure: unknown = null
  /** The callers that wait for a chunk, or for room. */
  #waiting: (() => void)[] = []

  /** @param limit the number of queued bytes beyond which `write` waits */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Queues bytes.
   * @param finish called with their final place, to complete them there
   * @returns a promise until which they must not change; null if they were copied
   * @throws the store's error, as a rejection
   */
  write(pieces: readonly Uint8Array[], finish?: (pieces: readonly Uint8Array[]) => void): Promise<void> | null {
    let remaining = 0
    const places = pieces.map(bytes => {
      if (bytes.length >= LONG_BYTES) {
        remaining++
        this.#flush()
        this.#push({ bytes, written: () => remaining-- })
        return bytes
      }
      // Short pieces are copied before anything else can happen.
      const place = this.#room(bytes.length)
      place.set(bytes)
      return place
    })
    finish?.(places)
    if (remaining === 0 && this.#byteLength <= this.#limit && this.#failure === null) return null
    return this.#written(() => remaining > 0)
  }

  async #written(isLeft: () => boolean): Promise<void> {
    while ((isLeft() || this.#byteLength > this.#limit) && this.#failure === null) await this.#change()
    if (this.#failure !== null) throw this.#failure
  }

  /** Passes on everything that is queued, if nobody reads the queue yet. @param take returns false to leave it in the queue */
  takeAll(take: (chunks: readonly Uint8Array[]) => boolean): boolean {
    this.#flush()
    if (!take(this.#chunks.map(({ bytes }) => bytes))) return false
    for (const { written } of this.#chunks) written?.()
    this.#chunks.length = 0
    this.#byteLength = 0
    return true
  }

  end(): void {
    this.#flush()
    this.#isEnded = true
    this.#changed()
  }

  /** Ends the queue with an error of the store or the writer. */
  fail(error: unknown): void {
    this.#failure ??= error
    this.#chunks.length = 0
    this.#changed()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift()
      if (chunk === undefined) {
        if (this.#failure !== null) throw this.#failure
        if (this.#isEnded) return
        await this.#change()
        continue
      }
      yield chunk.bytes
      this.#byteLength -= chunk.bytes.length
      chunk.written?.()
      this.#changed()
    }
  }

  /** Room for short pieces. */
  #room(byteLength: number): Uint8Array {
    if (this.#gatheredLength + byteLength > LONG_BYTES) this.#flush()
    this.#gathered ??= new Uint8Array(LONG_BYTES)
    const start = this.#gatheredLength
    this.#gatheredLength += byteLength
    return this.#gathered.subarray(start, this.#gatheredLength)
  }

  #flush(): void {
    if (this.#gathered === null) return
    const bytes = this.#gathered.subarray(0, this.#gatheredLength)
    this.#gathered = null
    this.#gatheredLength = 0
    this.#push({ bytes })
  }

  #push(chunk: Chunk): void {
    this.#chunks.push(chunk)
    this.#byteLength += chunk.bytes.length
    this.#changed()
  }

  #change(): Promise<void> {
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  #changed(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }
}
