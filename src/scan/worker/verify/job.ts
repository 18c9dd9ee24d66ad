/** The state that the ranges of a job share. */

import type { Address } from '../../../core/border/memory.js'
import type { Engine } from '../../../core/engine.js'
import type { Batch } from '../../../core/slots.js'
import { isRemote, type Store } from '../../../storage/store.js'
import { Interner } from '../../job/plan/interner.js'
import type { VerifyJob } from '../../job/verify-job.js'
import { isText } from './values.js'

/** The size of a window, which fits into the L2 cache. */
const WINDOW_BYTES = 1 << 20
/** The size of a window if each takes a request. */
const REMOTE_WINDOW_BYTES = 4 << 20
/** The number of Values surveyed at once. */
export const SLOTS = 4096
/** The number of bytes allowed behind the tensor_content of a record that streams; more than any metadata takes. */
export const MAX_TAIL_BYTES = 256 << 10

export interface RangeSetting {
  readonly job: VerifyJob
  readonly engine: Engine
  readonly store: Store
  readonly tags: TagNumbers
  readonly batch: Batch
  readonly window: Address
  readonly windowByteLength: number
  readonly tail: Address
}

/** Reserves all memory that a job needs. */
export function settingOf(job: VerifyJob, engine: Engine, store: Store): RangeSetting {
  engine.reset()
  const batch = engine.reserveBatch(SLOTS)
  const windowByteLength = Math.min(isRemote(store) ? REMOTE_WINDOW_BYTES : WINDOW_BYTES, job.windowByteLength)
  const window = engine.reserveBytes(windowByteLength)
  const tail = engine.reserveBytes(MAX_TAIL_BYTES)
  return { job, engine, store, tags: new TagNumbers(), batch, window, windowByteLength, tail }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Numbers tags by their bytes. */
export class TagNumbers {
  readonly #tags = new Interner()
  readonly #byBytes = new Map<string, number>()
  readonly #odd = new Set<string>()

  get names(): readonly string[] {
    return this.#tags.names
  }

  /** @param bytes the UTF-8 bytes of the tag, one per character */
  number(bytes: string): number {
    let number = this.#byBytes.get(bytes)
    if (number === undefined) {
      const utf8 = Buffer.from(bytes, 'latin1')
      number = this.#tags.number(decoder.decode(utf8))
      if (!isText(utf8)) this.#odd.add(bytes)
      this.#byBytes.set(bytes, number)
    }
    return number
  }

  /** True if a tag is valid UTF-8. @param bytes the bytes of a numbered tag */
  isText(bytes: string): boolean {
    return !this.#odd.has(bytes)
  }

  named(tag: string): number {
    return this.#tags.number(tag)
  }
}
