/**
 * The parts of Node.js that the reader uses, by the same names, made of what a browser has. The build puts it in the place of Node.js's
 * modules and globals (scripts/make-web.mjs); what of it nobody calls is left out.
 */

import { quote, UsageError } from '../base/errors.js'

const encoder = new TextEncoder()

// ------------------------------------------------------------------------------------------------------- node:timers/promises

const turns = new MessageChannel()
const waiting: (() => void)[] = []
turns.port1.onmessage = () => waiting.shift()?.()

/** Calls back in a later turn of the event loop. Timers would wait: at least 4 ms each, once they follow each other. */
function afterTurn(call: () => void): void {
  waiting.push(call)
  turns.port2.postMessage(null)
}

/** Both Node.js's global function, which calls back, and that of node:timers/promises. */
export function setImmediate(call?: () => void): Promise<void> {
  return new Promise(resolve => {
    afterTurn(() => {
      call?.()
      resolve()
    })
  })
}

/** Waits. @throws the signal's reason */
export function setTimeout(
  ms: number,
  value?: undefined,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      globalThis.clearTimeout(timer)
      reject(signal?.reason)
    }
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const timer = globalThis.setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve(value)
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

// ---------------------------------------------------------------------------------------------------------- node:async_hooks

/**
 * Browsers don't tell on whose behalf a function goes on after an `await`. So what applies to one piece of work applies to
 * all of the page while it lasts (docs/web.md).
 */
export class AsyncLocalStorage<T> {
  #store: T | undefined

  run<R>(store: T, work: () => R): R {
    this.#store = store
    return work()
  }

  getStore(): T | undefined {
    return this.#store
  }

  disable(): void {
    this.#store = undefined
  }
}

// ------------------------------------------------------------------------------------------------------ node:os, node:path, node:url

/** Threads that the machine runs at once. */
export function availableParallelism(): number {
  return globalThis.navigator.hardwareConcurrency
}

/** The last part of a path. */
export function basename(path: string): string {
  return path.replace(/\/+$/, '').replace(/^.*\//s, '')
}

/** A path with no `.` and no `..` that could be resolved. */
export function normalize(path: string): string {
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop()
    else if (part !== '..' || !path.startsWith('/')) parts.push(part)
  }
  const begin = path.startsWith('/') ? '/' : ''
  const inside = parts.join('/') || (begin === '' ? '.' : '')
  return `${begin}${inside}${path.endsWith('/') && inside !== '' ? '/' : ''}`
}

/** A page has no paths, so that there is nothing to resolve. */
export function resolve(path: string): string {
  return path
}

/** A URL stays as it is, too. */
export function fileURLToPath(url: string): string {
  return url
}

/** The inverse of `fileURLToPath`. */
export function pathToFileURL(path: string): URL {
  return new URL(`file://${path}`)
}

// ------------------------------------------------------------------------------------------------- node:crypto, node:child_process

/** A page runs no commands, so that an action which is one fails. */
export function spawn(command: string): never {
  throw new UsageError(`expected no action that runs a command, since a page can't, got ${quote(command)}`)
}

/** SHA-256, as Node.js makes it. */
export function createHash(algorithm: 'sha256') {
  if (algorithm !== 'sha256') throw new UsageError(`expected sha256, got ${algorithm}`)
  const hash = new Sha256()
  return {
    update(more: string | Uint8Array) {
      hash.update(typeof more === 'string' ? encoder.encode(more) : more)
      return this
    },
    digest(_encoding: 'hex'): string {
      return hash.digest()
    },
  }
}

const BLOCK = 64
/** The first state, and the constants of the rounds. */
const [START, ROUNDS] = [fractions(8, 1 / 2), fractions(64, 1 / 3)]

/** SHA-256 (FIPS 180-4) piece by piece. The browser's own takes all bytes at once, and answers with a promise. */
class Sha256 {
  readonly #state = Int32Array.from(START)
  readonly #words = new Int32Array(64)
  /** The bytes of a block that is not full. */
  readonly #open = new Uint8Array(BLOCK)
  #length = 0

  update(bytes: Uint8Array): this {
    const filled = this.#length % BLOCK
    this.#length += bytes.length
    let at = 0
    if (filled > 0) {
      at = Math.min(BLOCK - filled, bytes.length)
      this.#open.set(bytes.subarray(0, at), filled)
      if (filled + at < BLOCK) return this
      this.#add(this.#open, 0)
    }
    for (; at + BLOCK <= bytes.length; at += BLOCK) this.#add(bytes, at)
    this.#open.set(bytes.subarray(at))
    return this
  }

  /** In hexadecimal. Nothing can be added afterwards. */
  digest(): string {
    const length = this.#length
    const padding = new Uint8Array(BLOCK - ((length + 8) % BLOCK) + 8)
    padding[0] = 0x80
    new DataView(padding.buffer).setBigUint64(padding.length - 8, BigInt(length) * 8n)
    this.update(padding)
    return [...this.#state].map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
  }

  #add(bytes: Uint8Array, at: number): void {
    const words = this.#words
    for (let t = 0; t < 16; t++, at += 4) {
      words[t] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
    }
    for (let t = 16; t < 64; t++) {
      const [w2, w15] = [words[t - 2]!, words[t - 15]!]
      const s1 = rotate(w2, 17) ^ rotate(w2, 19) ^ (w2 >>> 10)
      const s0 = rotate(w15, 7) ^ rotate(w15, 18) ^ (w15 >>> 3)
      words[t] = s1 + words[t - 7]! + s0 + words[t - 16]!
    }
    const state = this.#state
    let a = state[0]!
    let b = state[1]!
    let c = state[2]!
    let d = state[3]!
    let e = state[4]!
    let f = state[5]!
    let g = state[6]!
    let h = state[7]!
    for (let t = 0; t < 64; t++) {
      const sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
      const first = (h + sum1 + ((e & f) ^ (~e & g)) + ROUNDS[t]! + words[t]!) | 0
      const sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
      const second = (sum0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + first) | 0
      d = c
      c = b
      b = a
      a = (first + second) | 0
    }
    state[0]! += a
    state[1]! += b
    state[2]! += c
    state[3]! += d
    state[4]! += e
    state[5]! += f
    state[6]! += g
    state[7]! += h
  }
}

function rotate(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by))
}

/** The first 32 bits of the fractional parts of powers of the first primes. */
function fractions(count: number, power: number): Int32Array {
  const primes: number[] = []
  for (let n = 2; primes.length < count; n++) if (primes.every(prime => n % prime !== 0)) primes.push(n)
  return Int32Array.from(primes, prime => (prime ** power % 1) * 2 ** 32)
}

// ------------------------------------------------------------------------------------------------------------------- Buffer

/** Bytes of a text in UTF-8. */
function byteLength(text: string): number {
  return encoder.encode(text).length
}

function compare(a: Uint8Array, b: Uint8Array): number {
  const common = Math.min(a.length, b.length)
  for (let i = 0; i < common; i++) if (a[i] !== b[i]) return a[i]! < b[i]! ? -1 : 1
  return Math.sign(a.length - b.length)
}

function concat(parts: readonly Uint8Array[], length = parts.reduce((sum, part) => sum + part.length, 0)): Uint8Array {
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Bytes with what the reader asks of a Buffer. */
class Bytes extends Uint8Array {
  override toString(encoding?: 'latin1' | 'utf8', start = 0, end = this.length): string {
    const part = this.subarray(start, end)
    if (encoding !== 'latin1') return new TextDecoder().decode(part)
    let text = ''
    for (let i = 0; i < part.length; i += 4096) text += String.fromCharCode(...part.subarray(i, i + 4096))
    return text
  }

  compare(other: Uint8Array): number {
    return compare(this, other)
  }

  /** @param wanted a byte, or bytes that follow each other */
  override indexOf(wanted: number | Uint8Array, from = 0): number {
    if (typeof wanted === 'number') return super.indexOf(wanted, from)
    const [first] = wanted
    if (first === undefined) return from
    for (let at = super.indexOf(first, from); at >= 0; at = super.indexOf(first, at + 1)) {
      if (at + wanted.length > this.length) return -1
      if (wanted.every((byte, i) => this[at + i] === byte)) return at
    }
    return -1
  }
}

/** A view of a buffer, or the bytes of a text. */
function from(given: string | ArrayBuffer, encodingOrStart?: string | number, length?: number): Bytes {
  if (typeof given !== 'string') return new Bytes(given, Number(encodingOrStart ?? 0), length)
  if (encodingOrStart !== 'latin1') return new Bytes(encoder.encode(given).buffer)
  return Bytes.from(given, character => character.charCodeAt(0)) as Bytes
}

export const Buffer = { byteLength, compare, concat, from }
