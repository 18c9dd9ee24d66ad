/** Makes a trial from a stream: lines of JSON, with bytes between them. docs/record.md describes the stream. */

import { basename, dirname, resolve } from 'node:path'
import { shown } from '../../base/arguments.js'
import { FormatError, TrialscanError, UsageError } from '../../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../../base/options.js'
import type { Mode } from '../../base/types.js'
import { isNpy, readNpy } from '../../format/array/npy.js'
import { readSafetensors } from '../../format/array/safetensors.js'
import { type ArraySource, arrayFault, type FileArray, MAX_ARRAY_BYTES, sourceOf } from '../../format/array/source.js'
import { readNpz } from '../../format/array/zip.js'
import { isZip } from '../../format/array/zip-directory.js'
import { LocalStore } from '../../storage/local/local-store.js'
import { WRITER_KINDS, type WriterOptions } from '../options.js'
import type { SavableValue } from '../values.js'
import { createWriter, type TrialWriter } from '../writer.js'
import { type ByteInput, InputReader, isByteInput, STREAM } from './input.js'
import { followingByteLength, type Line, lineFault, parseLine, readLine, type TensorEntry } from './line.js'

/** The limit for a line's length. */
const MAX_LINE_BYTES = 64 << 20
/** The approximate memory of a parsed line, in bytes per byte of text. */
const LINE_FACTOR = 32
const MAX_QUEUE_BYTES = 64 << 20
const DEFAULT_MEMORY = 2 ** 31
/** The size up to which a file is read at once. */
const SHORT_FILE_BYTES = 64 << 10
/** The number of problems that a report holds; all are counted. */
const MAX_PROBLEMS = 100

export interface RecordStreamOptions extends WriterOptions {
  /**
   * The approximate number of bytes that a line, an array and the queue to the store may take together. A line may have a 32nd of them
   * (at most 64 MiB), an array or a file that follows a line half (at most 1 GiB). At least 4 MiB. Default: 2 GiB.
   */
  readonly memory?: number
  /** The directory of files with relative paths. Default: the working directory. */
  readonly directory?: string
  /** Ends the trial; the current step is given up. */
  readonly signal?: AbortSignal
  /** Called for each tensor that could not be saved. An error that it throws ends the trial, which keeps what came before. */
  readonly onProblem?: (problem: FormatError) => void
}

/** The result of a recorded stream. */
export interface RecordedStream {
  /** The number of steps and tensors, saved or not, without a step that was given up. */
  readonly steps: number
  readonly tensors: number
  /** The number of saved steps. Steps that the configuration excludes, and steps without tensors, are not saved. */
  readonly savedSteps: number
  readonly savedTensors: number
  /** The first hundred tensors or lines that could not be saved, with the reason. */
  readonly problems: readonly FormatError[]
  readonly problemCount: number
  /** True if the signal ended it. */
  readonly isAborted: boolean
}

const STREAM_OPTIONS = optionsOf<RecordStreamOptions>({
  ...WRITER_KINDS,
  directory: kinds.text,
  memory: kinds.wholeNumber(4 << 20, 2 ** 40, 'bytes from 4 MiB (4194304) to 1 TiB'),
  signal: kinds.that('an AbortSignal', given => given instanceof AbortSignal),
  onProblem: kinds.that('a function', given => typeof given === 'function'),
})

/** The options that select which steps or tensors are saved. */
const CONFIGURATION = ['saveConfig', 'collections', 'includeCollections', 'includeRegex', 'saveAll'] as const

/**
 * Writes a trial from a stream of tensors, in order and no faster than they can be written. Without a configuration all tensors are
 * saved. A wrong tensor is left out and reported; the others are saved.
 * @param input bytes, such as `process.stdin`
 * @param path a directory, or `s3://bucket/prefix`
 * @throws what `createWriter` throws; StoreError; FormatError `BadTensorLine` for a line of more than 64 MiB. What came before is a
 *   complete trial
 */
export async function recordStream(
  input: ByteInput,
  path: string,
  options?: RecordStreamOptions,
): Promise<RecordedStream> {
  if (!isByteInput(input))
    throw new UsageError(`recordStream: expected ${STREAM}, got ${shown(input)}`, { call: 'recordStream' })
  const {
    directory = '.',
    memory = DEFAULT_MEMORY,
    signal,
    onProblem,
    ...given
  } = checkOptions('recordStream', STREAM_OPTIONS, options)
  const isConfigured = CONFIGURATION.some(name => given[name] !== undefined)
  const queueByteLength = Math.min(MAX_QUEUE_BYTES, Math.floor(memory / 16))
  const writer = await createWriter(path, { queueByteLength, ...given, ...(!isConfigured && { saveAll: true }) })
  const reader = new InputReader(input, signal)
  const recorder = new Recorder(writer, reader, { directory, savesAll: !isConfigured, memory })
  const problems: FormatError[] = []
  let problemCount = 0
  try {
    for (;;) {
      const lineProblems = await recorder.line()
      if (lineProblems === null || signal?.aborted) break
      for (const problem of lineProblems) {
        problemCount++
        if (problems.length < MAX_PROBLEMS) problems.push(problem)
        onProblem?.(problem)
      }
    }
    const isAborted = signal?.aborted === true
    if (isAborted) await writer.giveUpStep()
    await writer.close()
    return { ...recorder.counts(isAborted), problems, problemCount, isAborted }
  } catch (error) {
    // The original error counts, not one of closing the writer.
    await writer.close().catch(() => {})
    throw error
  } finally {
    reader.close()
  }
}

class Recorder {
  readonly #writer: TrialWriter
  readonly #reader: InputReader
  readonly #directory: string
  readonly #savesAll: boolean
  readonly #maxLineBytes: number
  readonly #maxArrayBytes: number
  #lineNumber = 0
  #steps = 0
  #tensors = 0
  #savedSteps = 0
  #savedTensors = 0
  /** The number of tensors in the current step. */
  #ofStep = { came: 0, saved: 0 }
  /** The mode of the current step; null before the first. */
  #stepMode: Mode | null = null
  #isStepWrong = false
  /** The directory of the last file. */
  #files: { readonly root: string; readonly store: LocalStore } | undefined

  constructor(
    writer: TrialWriter,
    reader: InputReader,
    {
      directory,
      savesAll,
      memory,
    }: { readonly directory: string; readonly savesAll: boolean; readonly memory: number },
  ) {
    this.#writer = writer
    this.#reader = reader
    this.#directory = directory
    this.#savesAll = savesAll
    this.#maxLineBytes = Math.min(MAX_LINE_BYTES, Math.floor(memory / LINE_FACTOR))
    this.#maxArrayBytes = Math.min(MAX_ARRAY_BYTES, memory / 2)
  }

  /** @param isAborted true if the current step was given up */
  counts(isAborted: boolean): Pick<RecordedStream, 'steps' | 'tensors' | 'savedSteps' | 'savedTensors'> {
    if (!isAborted) this.#countStep()
    const steps = this.#steps - Number(isAborted && this.#steps > 0)
    return { steps, tensors: this.#tensors, savedSteps: this.#savedSteps, savedTensors: this.#savedTensors }
  }

  #countStep(): void {
    const { came, saved } = this.#ofStep
    this.#tensors += came
    this.#savedTensors += saved
    this.#savedSteps += Number(saved > 0)
    this.#ofStep = { came: 0, saved: 0 }
  }

  /** Handles a line and the bytes that follow it. @returns its problems; null at the end */
  async line(): Promise<readonly FormatError[] | null> {
    const bytes = await this.#reader.line(this.#maxLineBytes)
    if (bytes === null) return null
    this.#lineNumber++
    if (bytes === undefined)
      throw this.#problem(lineFault(`a line of at most ${this.#maxLineBytes} bytes`, 'a longer one'))
    const problems: FormatError[] = []
    let json: ReturnType<typeof parseLine> = null
    let following = 0
    try {
      json = parseLine(bytes)
      if (json === null) return problems
      following = followingByteLength(json)
      const line = readLine(json)
      await this.#beginStep(line)
      for (const entry of line.tensors) {
        try {
          if (entry.source.kind === 'bytes' && following <= this.#maxArrayBytes) {
            const content = await this.#reader.bytes(following)
            const isWhole = content.length === following
            const got = `${content.length} up to the end of the input`
            const wanted = `${following} bytes after the line`
            following = 0
            if (!isWhole) throw lineFault(wanted, got)
            problems.push(...(await this.#saveFollowing(entry, entry.source.prefix, content)))
          } else problems.push(...(await this.#saveEntry(entry)))
        } catch (error) {
          problems.push(this.#problem(error))
        }
      }
    } catch (error) {
      problems.push(this.#problem(error))
      // The tensors of that step must not end up in another one.
      if (json !== null && 'step' in json) this.#isStepWrong = true
    }
    // These bytes are no lines.
    if (following > 0) await this.#reader.skip(following)
    return problems
  }

  async #beginStep({ step, mode, modeStep, tensors }: Line): Promise<void> {
    const writer = this.#writer
    if (step === undefined && tensors.length > 0 && (this.#stepMode === null || this.#isStepWrong)) {
      throw lineFault('a step', this.#isStepWrong ? 'none since that of an earlier line was wrong' : 'none yet')
    }
    const isCurrent =
      this.#stepMode !== null && (step === writer.globalStep || (step === undefined && tensors.length > 0))
    if (isCurrent && mode !== undefined && mode !== this.#stepMode) {
      throw lineFault(`mode ${this.#stepMode}, as step ${writer.globalStep} has begun`, mode)
    }
    if (mode !== undefined) writer.setMode(mode)
    if (step === undefined) return
    if (!isCurrent) {
      await writer.step({ step, ...(modeStep !== undefined && { modeStep }), saveAll: this.#savesAll })
      this.#stepMode = writer.mode
      this.#steps++
      this.#countStep()
    }
    this.#isStepWrong = false
  }

  /** @returns the problems of single arrays of a file */
  async #saveEntry(entry: TensorEntry): Promise<readonly FormatError[]> {
    const { name, dtype, shape, source } = entry
    switch (source.kind) {
      case 'value':
        await this.#save(name!, source.value, entry, { ...(dtype && { dtype }), ...(shape && { shape }) })
        return []
      case 'base64':
        await this.#save(name!, { data: source.bytes, dtype: dtype!, ...(shape && { shape }) }, entry)
        return []
      case 'file': {
        const path = resolve(this.#directory, source.path)
        const store = this.#storeOf(dirname(path))
        try {
          const file = await fileSource(store, basename(path), this.#maxArrayBytes)
          return await this.#saveFile(file, entry, source.prefix)
        } finally {
          // The next file of that name is another one.
          store.release()
        }
      }
      case 'bytes':
        throw lineFault(`at most ${this.#maxArrayBytes} bytes after a line`, `${source.byteLength}`)
    }
  }

  #storeOf(root: string): LocalStore {
    if (this.#files?.root !== root) {
      this.#files = { root, store: new LocalStore({ kind: 'local', root, allowSymlinks: true }) }
    }
    return this.#files.store
  }

  /** Saves elements unchanged, if the line has their dtype; otherwise reads a file. */
  async #saveFollowing(entry: TensorEntry, prefix: string, content: Uint8Array): Promise<readonly FormatError[]> {
    const { name, dtype, shape } = entry
    if (dtype !== undefined) {
      if (name === null) throw lineFault('a name beside a dtype', 'none')
      await this.#save(name, { data: content, dtype, ...(shape && { shape }) }, entry)
      return []
    }
    return this.#saveFile(
      sourceOf(`the bytes after line ${this.#lineNumber}`, content, this.#maxArrayBytes),
      entry,
      prefix,
    )
  }

  async #saveFile(file: ArraySource, entry: TensorEntry, prefix: string): Promise<readonly FormatError[]> {
    const { name, dtype } = entry
    const head = file.read(0, Math.min(8, file.byteLength))
    // A file for one name has no names of its own.
    if (isNpy(head) || (name !== null && !isZip(head))) {
      if (name === null) throw lineFault('a name for the array of a .npy file', 'none')
      await this.#saveArray(name, readNpy(file, dtype), entry)
      return []
    }
    if (name !== null)
      throw lineFault('a prefix in place of a name: the file has names of its own', JSON.stringify(name))
    const arrays = isZip(head) ? readNpz(file) : readSafetensors(file)
    const problems: FormatError[] = []
    for await (const [arrayName, array] of arrays) {
      try {
        if (array instanceof FormatError) throw array
        await this.#saveArray(`${prefix}${arrayName}`, array, entry)
      } catch (error) {
        problems.push(this.#problem(error))
      }
    }
    return problems
  }

  #saveArray(name: string, { dtype, shape, data, stride }: FileArray, entry: TensorEntry): Promise<void> {
    if (data instanceof Uint8Array) return this.#save(name, { data, dtype, shape, ...(stride && { stride }) }, entry)
    return this.#save(name, { shape, dtype, data: async () => data }, entry)
  }

  async #save(
    name: string,
    value: SavableValue,
    { collection }: TensorEntry,
    options: Parameters<TrialWriter['save']>[2] = {},
  ): Promise<void> {
    const named = collection === undefined ? {} : { collection }
    const isSaved = this.#writer.shouldSave(name, named)
    await this.#writer.save(name, value, { ...options, ...named })
    this.#ofStep.came++
    this.#ofStep.saved += Number(isSaved)
  }

  /** The problem of a line, with its place. @throws any other error */
  #problem(error: unknown): FormatError {
    if (!(error instanceof TrialscanError) || error === this.#writer.failure) throw error
    const line = this.#lineNumber
    const fields = error.fields as { readonly url?: string; readonly expected?: string; readonly got?: string }
    const message = `line ${line}: ${error.message.replace(/^writer\.\w+[:,] /, '')}`
    return new FormatError('BadTensorLine', message, { url: '', ...fields, line }, error)
  }
}

async function fileSource(store: LocalStore, path: string, maxArrayBytes: number): Promise<ArraySource> {
  const byteLength = await store.byteLength(path)
  const url = store.url(path)
  const read = (startByte: number, length: number): Uint8Array => {
    const bytes = new Uint8Array(length)
    const filled = store.readInto(path, startByte, bytes)
    if (filled < length) throw arrayFault(url, startByte, `${length} bytes`, `${filled}`)
    return bytes
  }
  return byteLength > SHORT_FILE_BYTES
    ? { url, byteLength, maxArrayBytes, read }
    : sourceOf(url, read(0, byteLength), maxArrayBytes)
}
