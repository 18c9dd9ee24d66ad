/** The checkpoints of a trial: found, read once, and made into records that are composed of what lies in their files. */

import { FormatError, quote, type TrialscanError } from '../../../base/errors.js'
import { entryOf } from '../../../base/maps.js'
import { inTurns, sortedInTurns } from '../../../base/turns.js'
import type { GlobalStep, Mode } from '../../../base/types.js'
import { TRAINER_STATE } from '../../../format/checkpoint/beside.js'
import { checkpointFilesAmong } from '../../../format/checkpoint/formats.js'
import { type CheckpointPlace, type Layout, layoutOf, layoutOfFile } from '../../../format/checkpoint/layout.js'
import { collectionsOf, orderKey } from '../../../format/checkpoint/names.js'
import type { StoredTensor } from '../../../format/checkpoint/stored-tensor.js'
import { notesOnUnread } from '../../../format/checkpoint/unread-formats.js'
import type { CollectionConfig } from '../../../format/collections.js'
import type { TensorLocation } from '../../../format/index-file.js'
import { END_MARKERS } from '../../../format/paths.js'
import { parseReductionName } from '../../../format/reduction-name.js'
import { TableBuilder } from '../../../storage/composed/table-builder.js'
import { type Store, storeName } from '../../../storage/store.js'
import type { Access } from '../../runner/access.js'
import { IndexColumns } from '../columns/index-columns.js'
import type { IndexRows } from '../columns/saved-rows.js'
import { type Beside, besideFiles, besideOf } from './beside-checkpoint.js'
import { type CheckpointFacts, factsOf } from './facts.js'
import { type Checkpoint, ONLY_WORKER, readCheckpoint } from './read-checkpoint.js'
import { RECORD_END, RecordHeads } from './record-head.js'
import { sourceRecord } from './source-record.js'

/** Statistics of a tensor that its writer saved beside its elements. */
export interface SavedStatistics {
  readonly step: number
  readonly worker: string
  readonly tensor: string
  readonly statistics: NonNullable<StoredTensor['statistics']>
  /** The place of its elements. */
  readonly file: string
  readonly start: number
}

/** A checkpoint that was read, and where its records lie. */
interface KnownCheckpoint extends Beside {
  readonly place: CheckpointPlace
  /** The stamp of its files when it was read. */
  readonly stamp: string
  readonly read: Checkpoint
  readonly rows: readonly {
    readonly step: number
    readonly worker: string
    readonly mode: Mode
    readonly modeStep: number
    readonly name: string
    readonly tensors: readonly TensorLocation[]
  }[]
}

/** The last checkpoint of a run is being written if it is not whole, and was changed so lately. */
const WRITING_MS = 60_000
const SCALARS = 'scalars'

export class CheckpointFiles {
  readonly #access: Access
  /** The file that was named; null: all of the directory. */
  readonly #file: string | null
  readonly #isWanted: (step: number) => boolean
  readonly #readsAll: boolean
  #layout: Layout | null = null
  /** By place and step: files that each say their step lie in one place. */
  #known = new Map<string, KnownCheckpoint>()
  #writing: readonly string[] = []
  /** Notes on files of formats that are not read. */
  #unreadNotes: readonly string[] = []
  #scalarRows: KnownCheckpoint['rows'] = []
  #versions = 0
  #hasEndMarker = false

  /** @param readsAll true to read a checkpoint that may be being written like any other, and the head of every chunk */
  constructor(access: Access, file: string | null, isWanted: (step: number) => boolean, readsAll: boolean) {
    this.#access = access
    this.#file = file
    this.#isWanted = isWanted
    this.#readsAll = readsAll
  }

  /** True if checkpoints were found. */
  get isFound(): boolean {
    return this.#layout !== null
  }

  /** True if nothing more will come: the job has said so, or it is one whole checkpoint and not a directory of steps. */
  get isEnded(): boolean {
    return this.#hasEndMarker || (this.#layout !== null && this.#layout.family === null)
  }

  /**
   * Reads the headers of checkpoints that are new or have changed.
   * @param paths all files of the place
   * @returns whether there was something new; null: it holds no checkpoint
   * @throws FormatError `AmbiguousSteps`; StoreError
   */
  async load(paths: readonly string[]): Promise<boolean | null> {
    const layout = this.#layoutOf(paths)
    if (layout === null) return null
    const isFirst = this.#layout === null
    if (this.#file === null) this.#unreadNotes = notesOnUnread(paths)
    this.#layout = layout
    const hasEndMarker = paths.some(path => END_MARKERS.includes(path))
    const { store } = this.#access
    const table = new TableBuilder(RECORD_END)
    const known = new Map<string, KnownCheckpoint>()
    const writing: string[] = []
    let isNew = isFirst || hasEndMarker !== this.#hasEndMarker
    this.#hasEndMarker = hasEndMarker
    const lastStep = layout.checkpoints.reduce((last, { step }) => Math.max(last, step), Number.NEGATIVE_INFINITY)
    for (const place of layout.checkpoints) {
      if (!this.#isWanted(place.step)) continue
      const stamp = await stampOf(store, place, paths)
      const before = this.#known.get(keyOf(place))
      if (before?.stamp === stamp.text && isUnchanged(store, before)) {
        known.set(keyOf(place), before)
        continue
      }
      const read = await readCheckpoint(store, place, this.#readsAll)
      const isWhole = read.problems.length === 0 && read.unread.every(({ error }) => error.code === 'UnreadableDType')
      const mayBeWritten = layout.family !== null && place.step === lastStep && !this.#readsAll && !hasEndMarker
      if (!isWhole && mayBeWritten && Date.now() - stamp.changedMs < WRITING_MS) {
        writing.push(writingNote(place))
        // A checkpoint that was whole is being replaced.
        isNew ||= before !== undefined
        continue
      }
      isNew = true
      known.set(keyOf(place), {
        place,
        stamp: stamp.text,
        read,
        rows: await this.#compose(table, place, read),
        ...(await besideOf(store, place, paths)),
      })
    }
    if (isFirst) {
      const all = [...known.values()].map(({ read }) => read)
      const isEmpty = all.every(({ groups, unread }) => groups.length === 0 && unread.length === 0)
      const [problem] = all.flatMap(({ problems }) => problems)
      if (isEmpty && writing.length === 0 && problem !== undefined) throw problem
      if (isEmpty && all.length > 0 && all.every(({ fileCount }) => fileCount === 0)) {
        this.#layout = null
        return null
      }
    }
    isNew ||= known.size !== this.#known.size
    this.#known = known
    this.#writing = writing
    if (isNew) this.#scalarRows = this.#composeScalars(table)
    if (!table.isEmpty) this.#access.compose(table.finish())
    return isNew
  }

  #layoutOf(paths: readonly string[]): Layout | null {
    if (this.#file !== null) return layoutOfFile(this.#file)
    const { store, spec } = this.#access
    const layout = layoutOf(checkpointFilesAmong(paths), storeName(spec))
    if ('below' in layout) return null
    if (!('ambiguous' in layout)) return layout
    throw ambiguousSteps(store.url(''), layout.ambiguous)
  }

  /** Puts the tensors of a checkpoint into the table. */
  async #compose(
    table: TableBuilder,
    { place }: CheckpointPlace,
    { groups, versions }: Checkpoint,
  ): Promise<KnownCheckpoint['rows']> {
    table.know(versions)
    const version = this.#versions++
    const heads = new RecordHeads()
    const rows: KnownCheckpoint['rows'][number][] = []
    for (const { step, worker, tensors } of groups) {
      const [{ mode = 'GLOBAL', modeStep = step }] = tensors as [StoredTensor]
      const name = `${place === '' ? '.' : place}#${version} ${step} ${worker}`
      table.begin(name, place)
      const locations: TensorLocation[] = []
      await inTurns(await inOrder(tensors), tensor => {
        const { startByte, byteLength } = table.add(sourceRecord(step, tensor, heads))
        locations.push({ name: tensor.name, startByte, byteLength })
      })
      rows.push({ step, worker, mode, modeStep, name, tensors: locations })
    }
    return rows
  }

  /** The numbers that the last log has, a record each. */
  #composeScalars(table: TableBuilder): KnownCheckpoint['rows'] {
    const last = [...this.#known.values()].filter(({ logged }) => logged.size > 0).at(-1)
    if (last === undefined) return []
    const version = this.#versions++
    const heads = new RecordHeads()
    return [...last.logged]
      .filter(([step]) => this.#isWanted(step))
      .map(([step, logged]) => {
        const name = `${TRAINER_STATE}#${version} ${step}`
        table.begin(name, `${last.place.place}/${TRAINER_STATE}`)
        const tensors = [...logged].map(([scalar, value]) => {
          const literal = new Uint8Array(Float64Array.of(value).buffer)
          const head = heads.of(step, scalar, 'float64', [], literal.length)
          const blocks = [{ file: null, start: 0, literal, byteLength: literal.length }]
          return { name: scalar, ...table.add({ head, dataByteLength: literal.length, blocks }), eventFile: name }
        })
        return { step, worker: ONLY_WORKER, mode: 'GLOBAL', modeStep: step, name, tensors }
      })
  }

  /** The rows that index files would have. */
  async rows(): Promise<IndexRows> {
    const columns = new IndexColumns()
    const scalars = new Map(this.#scalarRows.map(row => [row.step, row]))
    const rows = [...this.#known.values()].flatMap(({ rows }) => rows)
    // The first worker of a step has what was logged at it.
    const firstWorkers = new Map<number, string>()
    for (const { step, worker } of rows) {
      const first = firstWorkers.get(step)
      if (first === undefined || worker < first) firstWorkers.set(step, worker)
    }
    const add = async (
      { step, worker, mode, modeStep, name }: KnownCheckpoint['rows'][number],
      tensors: readonly TensorLocation[],
    ): Promise<void> => {
      const list = await columns.lists.addInTurns(tensors)
      columns.addListed(step as GlobalStep, worker, { mode, modeStep, eventFile: name, list })
    }
    for (const row of rows) {
      const { step, worker, tensors } = row
      const logged = firstWorkers.get(step) === worker ? scalars.get(step) : undefined
      const names = logged && new Set(tensors.map(({ name }) => name))
      const more = logged?.tensors.filter(scalar => !names!.has(scalar.name)) ?? []
      await add(row, more.length > 0 ? [...tensors, ...more] : tensors)
    }
    for (const row of this.#scalarRows) {
      const locations = row.tensors.map(({ eventFile: _, ...location }) => location)
      if (!firstWorkers.has(row.step)) await add(row, locations)
    }
    return { columns, rows: Int32Array.from({ length: columns.length }, (_, row) => row), faults: new Map() }
  }

  problems(): TrialscanError[] {
    // Many tensors of a file may share an error.
    return [...this.#known.values()].flatMap(({ read }) => [
      ...new Set([...read.problems, ...read.unread.map(({ error }) => error)]),
    ])
  }

  /** Statistics that were saved beside tensors. */
  statistics(): SavedStatistics[] {
    return [...this.#known.values()].flatMap(({ read }) =>
      read.groups.flatMap(({ step, worker, tensors }) =>
        tensors.flatMap(({ name, statistics, blocks: [block] }) =>
          statistics && block ? { step, worker, tensor: name, statistics, file: block.file, start: block.start } : [],
        ),
      ),
    )
  }

  /** Paths of the files that were read. */
  files(): string[] {
    return [...this.#known.values()].flatMap(({ place }) => place.files.map(({ path }) => path))
  }

  /** The number of records, a tensor with its saved reductions each, that lie in such files alone. */
  recordsIn(isSuch: (path: string) => boolean): number {
    return [...this.#known.values()].reduce((sum, { read, place }) => {
      const [isAny, areAll] = [
        place.files.some(({ path }) => isSuch(path)),
        place.files.every(({ path }) => isSuch(path)),
      ]
      const isWithin = ({ blocks, data }: StoredTensor) =>
        blocks.length > 0 ? blocks.every(({ file }) => isSuch(file)) : data ? areAll : isAny
      return sum + read.groups.reduce((count, { tensors }) => count + recordsOf(tensors, isWithin), 0)
    }, 0)
  }

  /** Notes on what was left out, and why. */
  notes(): string[] {
    const { leftOut = [], family } = this.#layout ?? {}
    const others =
      family && leftOut.length > 0
        ? [
            `${shownList(leftOut)} beside the steps ${family} ${leftOut.length === 1 ? 'is' : 'are'} not read: name ${leftOut.length === 1 ? 'it' : 'one'} to read it`,
          ]
        : []
    return [
      ...this.#writing,
      ...others,
      ...this.#unreadNotes,
      ...notesOnRanks([...this.#known.values()].map(({ place }) => place)),
      ...[...this.#known.values()].flatMap(({ read }) => read.notes),
    ]
  }

  /** The collections that the names of tensors make up. */
  async collections(): Promise<ReadonlyMap<string, CollectionConfig>> {
    const members = new Map<string, string[]>()
    const add = (collection: string, name: string): void => {
      entryOf(members, collection, () => []).push(name)
    }
    const groups = [...this.#known.values()].flatMap(({ read }) => read.groups)
    // One has each name once; saved reductions share the name of their tensor.
    const isOnce = groups.length === 1 && groups[0]!.tensors[0]?.collections === undefined
    const seen = isOnce ? null : new Set<string>()
    for (const { tensors } of groups) {
      await inTurns(tensors, ({ name, collections }) => {
        // A saved reduction makes its tensor a member.
        const tensor = collections ? (parseReductionName(name)?.tensor ?? name) : name
        if (seen?.has(tensor)) return
        seen?.add(tensor)
        for (const collection of collections ?? collectionsOf(tensor)) add(collection, tensor)
      })
    }
    const scalars = new Set(this.#scalarRows.flatMap(({ tensors }) => tensors.map(({ name }) => name)))
    for (const name of scalars) {
      add(SCALARS, name)
      if (/loss$/.test(name) && members.get('losses')?.includes(name) !== true) add('losses', name)
    }
    return new Map([...members].map(([name, names]) => [name, collection(name, names)]))
  }

  /** The facts about the last checkpoint that has tensors. */
  async facts(): Promise<CheckpointFacts | null> {
    const all = [...this.#known.values()]
    const last = all.findLast(({ read }) => read.groups.length > 0 || read.unread.length > 0) ?? all.at(-1)
    if (last === undefined || this.#layout === null) return null
    return factsOf(last, this.#layout, storeName(this.#access.spec))
  }
}

/** The number of records all of whose tensors are such. */
function recordsOf(tensors: readonly StoredTensor[], isSuch: (tensor: StoredTensor) => boolean): number {
  const records = new Map<string, boolean>()
  for (const tensor of tensors) {
    const name = parseReductionName(tensor.name)?.tensor ?? tensor.name
    records.set(name, isSuch(tensor) && records.get(name) !== false)
  }
  return [...records.values()].filter(Boolean).length
}

function writingNote({ step, place }: CheckpointPlace): string {
  return `${place || `step ${step}`} is not whole, and was changed less than a minute ago: it is left out`
}

function keyOf({ step, place }: CheckpointPlace): string {
  return `${step} ${place}`
}

/** In the order of execution, where it is known, else in the natural order of names. */
async function inOrder(tensors: readonly StoredTensor[]): Promise<StoredTensor[]> {
  const keyed: { readonly tensor: StoredTensor; readonly order: number; readonly key: string }[] = []
  await inTurns(tensors, tensor => {
    keyed.push({ tensor, order: tensor.order ?? Number.POSITIVE_INFINITY, key: orderKey(tensor.name) })
  })
  const sorted = await sortedInTurns(keyed, (a, b) => {
    if (a.order !== b.order) return a.order - b.order
    return a.key < b.key ? -1 : a.key > b.key ? 1 : 0
  })
  return sorted.map(({ tensor }) => tensor)
}

function collection(name: string, tensorNames: readonly string[]): CollectionConfig {
  return { name, includeRegex: [], tensorNames, reductionConfig: null, saveConfig: null, saveHistogram: false }
}

/** A stamp that changes with the files of a checkpoint, and the time of their last change. */
async function stampOf(
  store: Store,
  checkpoint: CheckpointPlace,
  paths: readonly string[],
): Promise<{ readonly text: string; readonly changedMs: number }> {
  const files = [...checkpoint.files.map(({ path }) => path), ...besideFiles(checkpoint, paths)]
  const stamps = await store.stamps(files)
  let changedMs = 0
  for (let i = 0; i < checkpoint.files.length; i++) changedMs = Math.max(changedMs, stamps[i * 3 + 1] || 0)
  return { text: JSON.stringify([files, [...stamps]]), changedMs }
}

/** True if files that belong to others, as chunks to their `.metadata`, are those that were read. */
function isUnchanged(store: Store, { place, read }: KnownCheckpoint): boolean {
  const stamped = new Set(place.files.map(({ path }) => path))
  // An open file would still be the old one.
  store.release?.()
  return [...read.versions].every(([path, version]) => stamped.has(path) || store.versionOf?.(path) === version)
}

function shownList(names: readonly string[]): string {
  const shown = names.slice(0, 5).map(quote).join(', ')
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown
}

/** Notes on checkpoints without files of ranks that the ones beside them have. */
function notesOnRanks(places: readonly CheckpointPlace[]): string[] {
  const ranks = places.map(({ files }) => {
    const workers = files.flatMap(({ worker }) => worker ?? [])
    return new Set(workers.filter(worker => /^(?:mp|zero_pp)_rank_/.test(worker)))
  })
  return ranks.flatMap((workers, i) => {
    const beside = [...(ranks[i - 1] ?? []), ...(ranks[i + 1] ?? [])]
    const missing = [...new Set(beside)].filter(worker => !workers.has(worker)).sort()
    if (missing.length === 0) return []
    return [`step ${places[i]!.step} has no files of ${shownList(missing)}, as steps beside it do`]
  })
}

function ambiguousSteps(url: string, [first, second]: readonly [string, string]): FormatError {
  const [expected, got] = ['one way to name steps', `as many of ${first} as of ${second}`]
  const message = `${url}: expected ${expected}, got ${got}: move those that are not meant, or name one of them`
  return new FormatError('AmbiguousSteps', message, { url, expected, got })
}
