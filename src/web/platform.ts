/**
 * The used parts of Node.js under the same names, in terms of what a browser has. The build puts this module in the
 * place of Node.js's modules and globals (scripts/make-web.mjs) and drops what is unused.
 */

import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
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

/** `setImmediate` as a global function, with a callback, and as that of node:timers/promises. */
export function setImmediate(call?: () => void): Promise<void> {
  return new Promise(resolve => {
    afterTurn(() => {
      call?.()
      resolve()
    })
  })
}

/**
 * Waits for a number of milliseconds.
 * @throws the signal's reason
 */
export function setTimeout(
  ms: number,
  value?: undefined,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const timer = globalThis.setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve(value)
    }, ms)
    const stop = (): void => {
      globalThis.clearTimeout(timer)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', stop, { once: true })
  })
}

// ---------------------------------------------------------------------------------------------------------- node:async_hooks

/**
 * The storage of a context. A browser doesn't keep a context across an `await`, so the context of one piece of work
 * applies to the whole page while that lasts (docs/web.md).
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

/** The number of threads that run in parallel. */
export function availableParallelism(): number {
  return globalThis.navigator.hardwareConcurrency
}

export function basename(path: string): string {
  return path.replace(/\/+$/, '').replace(/^.*\//s, '')
}

/** A path without `.`, and without each `..` that can be resolved. */
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

/** The path itself: a page has no directory to resolve it against. */
export function resolve(path: string): string {
  return path
}

/** The URL itself: a page has no paths. */
export function fileURLToPath(url: string): string {
  return url
}

/** The inverse of `fileURLToPath`. */
export function pathToFileURL(path: string): URL {
  return new URL(`file://${path}`)
}

// ------------------------------------------------------------------------------------------------- node:crypto, node:child_process

/** Fails, since a page runs no commands. */
export function spawn(command: string): never {
  throw new UsageError(`expected no action that runs a command, since a page can't, got ${quote(command)}`)
}

/** A SHA-256 hash with the interface of Node.js. */
export function createHash(algorithm: 'sha256') {
  if (algorithm !== 'sha256') throw new UsageError(`expected sha256, got ${algorithm}`)
  // The browser's own digest needs all bytes together and answers with a promise.
  const hash = sha256.create()
  return {
    update(more: string | Uint8Array) {
      hash.update(typeof more === 'string' ? encoder.encode(more) : more)
      return this
    },
    digest(_encoding: 'hex'): string {
      return bytesToHex(hash.digest())
    },
  }
}

// ------------------------------------------------------------------------------------------------------------------- Buffer

/** The number of bytes of a text in UTF-8. */
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

/** Bytes with the used methods of Buffer. */
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

  /** @param wanted a byte, or a sequence of bytes */
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
