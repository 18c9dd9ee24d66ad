/**
 * A table in a directory: `trial=…/part-00000.parquet` for each trial, as Hive names partitions. Each file appears when it is whole, and
 * `_SUCCESS` when all are; without it the table is not taken for whole.
 */

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { OutputFile, written } from '../../storage/local/output.js'
import { writeFile } from '../output.js'

/** The file that marks a complete table. */
export const WHOLE = '_SUCCESS'
const PART = 'part-00000.parquet'
/** The file that records the source of a part. Readers of tables skip names that begin with `_`. */
const STATE = '_trialscan.json'

/** The state of a part: how a trial was scanned, and the result. */
export interface PartState {
  /** The version of trialscan. */
  readonly version: string
  readonly trial: string
  /** The fingerprint of the trial's files. */
  readonly fingerprint: string
  /** The options that determine the rows. */
  readonly options: string
  readonly rows: number
  /** True if no row and nothing in the trial had an error. What failed may be readable the next time. */
  readonly isWhole: boolean
}

/** True if `--out` is a directory: an existing one, or a name with a slash at the end. */
export async function isDirectoryOut(out: string): Promise<boolean> {
  if (/[\\/]$/.test(out)) return true
  return (await stat(out).catch(() => null))?.isDirectory() === true
}

export class Partitions {
  readonly #root: string

  private constructor(root: string) {
    this.#root = root
  }

  /** Opens a table, and removes the mark of a complete one. */
  static async open(root: string): Promise<Partitions> {
    const whole = join(root, WHOLE)
    // Whether anything can be written there is told before the work.
    await (await OutputFile.create(whole, { makesDirectory: true })).discard()
    await written(root, () => rm(whole, { force: true }))
    return new Partitions(root)
  }

  /** The state of a whole part; null if there is none. */
  async stateOf(trial: string): Promise<PartState | null> {
    const folder = this.#folder(trial)
    if (!existsSync(join(folder, PART))) return null
    try {
      return JSON.parse(await readFile(join(folder, STATE), 'utf8')) as PartState
    } catch {
      // Without it the part is written anew.
      return null
    }
  }

  /**
   * Writes or replaces a part.
   * @param state called when all bytes are written
   */
  async write(trial: string, bytes: AsyncIterable<Uint8Array>, state: () => PartState): Promise<void> {
    const folder = this.#folder(trial)
    await rm(join(folder, STATE), { force: true })
    await writeFile(join(folder, PART), bytes)
    await writeFile(join(folder, STATE), [`${JSON.stringify(state())}\n`])
  }

  /** Marks the table as complete. */
  async finish(): Promise<void> {
    await writeFile(join(this.#root, WHOLE), [])
  }

  #folder(trial: string): string {
    return join(this.#root, `trial=${fileName(trial)}`)
  }
}

/** Bytes of a file's name, with room for what is put before and behind it. */
const MAX_NAME_BYTES = 240

/** Percent-encoded (half of a surrogate pair as U+FFFD), as Hive names partitions; of a long text the beginning, and a digest of all of it. */
export function fileName(text: string): string {
  const encoded = encodeURIComponent(Buffer.from(text).toString())
    .replaceAll('*', '%2A')
    .replace(/^\.+$/, dots => dots.replaceAll('.', '%2E'))
  if (encoded.length <= MAX_NAME_BYTES) return encoded
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `${encoded.slice(0, MAX_NAME_BYTES - digest.length - 1)}-${digest}`
}
