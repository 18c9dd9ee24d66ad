/** The routes of the pages and of the API. */

import { createHash } from 'node:crypto'
import { QueryError, quote } from '../../base/errors.js'
import { MIN_MEMORY } from '../../scan/job/plan/memory.js'
import { npyChunks } from '../../table/npy.js'
import { KINDS, type Kind } from '../../trial/kinds/kinds.js'
import type { ScanOptions } from '../../trial/scan-selection.js'
import { SERVED_STATISTICS, type ServedStatistic } from '../data.js'
import { comparedView } from '../differences.js'
import { trialOverview } from '../overview/overview.js'
import { guard, problem, SAFE_HEADERS } from './access.js'
import { chunksOf, etag, failure, has, jsonText, listed } from './answers.js'
import { Asked, type Parameter, SCAN, type ScanFormat, SELECTION, VALUE, type ValueFormat } from './asked.js'
import { expectBounded } from './bounds.js'
import { eventStream } from './events.js'
import { type App, type Context, compressed, newApp } from './http.js'
import type { Scope } from './kept-columns.js'
import { OPENAPI } from './openapi.js'
import { addPages } from './pages.js'
import { PARTS, type ServedTrial } from './served-trial.js'
import { streamOf } from './streams.js'
import { BACKGROUND, type Turns } from './turns.js'

export interface RouteOptions {
  /** The trials by their ids. Trials may be added, and those never opened may be removed. */
  readonly trials: ReadonlyMap<string, ServedTrial>
  /** Calls a listener for each trial that is added. @returns a function that removes the listener */
  readonly onAdded: (listener: (added: ServedTrial) => void) => () => void
  readonly token: string | undefined
  /** The origins, besides our own, whose pages may read the answers. */
  readonly cors: readonly string[]
  readonly version: string
  /** True if `/` leads to the app while there is no trial. */
  readonly app: boolean
  /** The turns of all scans and reads. */
  readonly turns: Turns
  readonly threads: number | undefined
  readonly memory: number | undefined
  /** Aborted when the server closes. */
  readonly signal: AbortSignal
}

/** The largest number of elements in a value as JSON. */
const MAX_JSON_ELEMENTS = 1_000_000

const MEDIA_TYPES: Readonly<Record<ScanFormat, string>> = {
  json: 'application/json',
  jsonl: 'application/jsonl',
  csv: 'text/csv; charset=utf-8',
  arrow: 'application/vnd.apache.arrow.stream',
  parquet: 'application/vnd.apache.parquet',
}

export function routes(options: RouteOptions): App {
  return new Routes(options).app
}

class Routes {
  readonly app = newApp()
  readonly #options: RouteOptions
  readonly #turns: Turns
  /** The trials that wait to be opened. */
  readonly #opening = new Set<ServedTrial>()
  /** The part of tags that differs from one run of the server to the next. */
  readonly #run = createHash('sha256').update(`${Date.now()} ${Math.random()}`).digest('base64url').slice(0, 10)

  constructor(options: RouteOptions) {
    this.#options = options
    this.#turns = options.turns
    this.#secure()
    addPages(this.app, options, id => this.#served(id).id)
    this.#api()
    this.app.notFound(context => context.json(problem('NotFound', `there is nothing at ${context.req.path}`), 404))
    this.app.onError((error, context) => failure(error, context))
  }

  #secure(): void {
    const { app } = this
    const { token, cors } = this.#options
    app.use(async (context, next) => {
      await next()
      for (const [name, value] of Object.entries(SAFE_HEADERS)) context.res.headers.set(name, value)
      const origin = context.req.header('origin')
      if (origin !== undefined && cors.includes(origin)) {
        context.res.headers.set('access-control-allow-origin', origin)
        context.res.headers.set('cross-origin-resource-policy', 'cross-origin')
        context.res.headers.append('vary', 'Origin')
      }
    })
    // A browser's preflight request carries no token.
    app.options('*', context =>
      cors.includes(context.req.header('origin') ?? '')
        ? new Response(null, {
            status: 204,
            headers: {
              'access-control-allow-methods': 'GET',
              'access-control-allow-headers': 'authorization, if-none-match',
            },
          })
        : context.json(problem('Forbidden', 'expected an origin that was allowed'), 403),
    )
    app.use(guard(token))
    app.use(async (context, next) => {
      if (context.req.method === 'GET' || context.req.method === 'HEAD') return next()
      return context.json(problem('MethodNotAllowed', `expected GET, got ${context.req.method}`), 405, {
        allow: 'GET, HEAD',
      })
    })
    app.use(compressed([MEDIA_TYPES.jsonl]))
  }

  #api(): void {
    const { app } = this
    const { trials, version } = this.#options
    app.get('/api/openapi.json', context =>
      context.json({ ...OPENAPI, info: { ...OPENAPI.info, version: version || '0' } }),
    )
    app.get('/api/trials', context => {
      this.#ask(context, [])
      for (const served of trials.values()) this.#openSoon(served)
      const body = jsonText([...trials.values()].map(listed))
      return context.body(body, 200, { 'content-type': 'application/json' })
    })
    this.#get('/api/trials/:id', [], async served => {
      await served.open()
      return listed(served)
    })
    this.#get('/api/trials/:id/overview', SELECTION, async (served, query, signal) =>
      trialOverview(await served.open(), { ...query.selection, ...this.#reading(signal) }),
    )
    this.#get('/api/trials/:id/findings', [], async served => {
      await served.open()
      const { judging } = served
      return { rules: judging?.rules ?? [], findings: judging?.findings ?? [] }
    })
    this.#get('/api/trials/:id/tensors', [], async served => {
      const trial = await served.open()
      const { tensors } = await trial.summary(this.#working)
      return tensors.map(({ error, ...tensor }) => ({ ...tensor, ...(error && { error: error.message }) }))
    })
    this.#get('/api/trials/:id/view', [], served => served.view())
    this.#get('/api/trials/:id/view/column', COLUMN, (served, query) => {
      const name = query.text('statistic') as ServedStatistic
      const tensor = query.text('tensor')
      const scope: Scope = tensor === undefined ? { kind: (query.text('kind') ?? 'all') as Kind | 'all' } : { tensor }
      return served.column(name, scope)
    })
    this.#get('/api/trials/:id/view/ridges', [NAME], (served, query) => served.ridges(query.text('tensor')!))
    for (const part of Object.keys(PARTS) as (keyof typeof PARTS)[])
      this.#get(`/api/trials/:id/view/${part}`, [], (served, _, signal) => served.part(part, signal))
    this.#get('/api/trials/:id/view/embedding', EMBEDDING, (served, query, signal) => {
      const named = ['labels', 'images', 'reconstructions'].flatMap(name => {
        const value = query.text(name)
        return value === undefined ? [] : [[name, value] as const]
      })
      return served.embedding({ embed: query.text('tensor')!, ...Object.fromEntries(named) }, signal)
    })
    app.get('/api/compare/:a/:b', context => this.#compare(context))
    app.get('/api/trials/:id/events', async context => {
      this.#ask(context, [])
      const served = this.#served(context.req.param('id'))
      await served.open()
      return eventStream(context, [served], this.#signal(context), change => change.isOver)
    })
    app.get('/api/events', context => {
      this.#ask(context, [])
      return eventStream(context, trials.values(), this.#signal(context), () => false, this.#options.onAdded)
    })
    app.get('/api/trials/:id/scan', context => this.#scan(context))
    app.get('/api/trials/:id/value', context => this.#value(context))
  }

  #served(id: string): ServedTrial {
    const served = this.#options.trials.get(id)
    if (served === undefined)
      throw new QueryError('TrialUnavailable', `there is no trial ${quote(id)}; /api/trials lists them`, { trial: id })
    return served
  }

  #ask(context: Context, parameters: readonly Parameter[]): Asked {
    const { searchParams } = new URL(context.req.url)
    return new Asked(searchParams, parameters)
  }

  /** An answer as JSON. It changes only with the trial. */
  #get(
    path: string,
    parameters: readonly Parameter[],
    answer: (served: ServedTrial, query: Asked, signal: AbortSignal) => Promise<unknown>,
  ): void {
    this.app.get(path, async context => {
      const served = this.#served(context.req.param('id')!)
      const query = this.#ask(context, parameters)
      await served.open()
      return this.#answer(context, this.#tag(served, context, true), signal => answer(served, query, signal))
    })
  }

  /** Answers with the JSON that work returns when its turn has come. */
  async #answer(context: Context, tag: string, work: (signal: AbortSignal) => Promise<unknown>): Promise<Response> {
    if (has(context, tag)) return context.body(null, 304, { etag: tag })
    const signal = this.#signal(context)
    const end = await this.#turns.take(signal)
    try {
      return context.body(jsonText(await work(signal)), 200, {
        'content-type': 'application/json',
        etag: tag,
        'cache-control': 'private, no-cache',
      })
    } finally {
      end()
    }
  }

  /** Opens a trial in the background, when its turn has come. */
  #openSoon(served: ServedTrial): void {
    if (served.opened !== undefined || this.#opening.has(served)) return
    this.#opening.add(served)
    // Each wait has a signal of its own: Node.js warns of a leak when one signal has many listeners.
    BACKGROUND.take(AbortSignal.any([this.#options.signal]))
      .then(end => served.open().finally(end))
      .catch(() => {})
      .finally(() => this.#opening.delete(served))
  }

  /** The differences of two trials. The answer changes only with the trials. */
  async #compare(context: Context): Promise<Response> {
    const both = [context.req.param('a')!, context.req.param('b')!].map(id => this.#served(id)) as [
      ServedTrial,
      ServedTrial,
    ]
    this.#ask(context, [])
    const [a, b] = await Promise.all([both[0].open(), both[1].open()])
    const tag = etag(`${this.#run} ${both.map(served => served.trialVersion)} ${context.req.url}`)
    return this.#answer(context, tag, signal => comparedView(a, b, this.#reading(signal)))
  }

  /** The tag of an answer. It changes with the trial, the request, and the run of the server. */
  #tag(served: ServedTrial, context: Context, isJudged = false): string {
    const findingsText = isJudged ? `${served.change.version} ${served.change.findings}` : ''
    return etag(`${this.#run} ${served.trialVersion} ${findingsText} ${context.req.url}`)
  }

  #signal(context: Context): AbortSignal {
    return AbortSignal.any([this.#options.signal, context.req.raw.signal])
  }

  get #working() {
    const { threads, memory } = this.#options
    return { threads, memory: memory && Math.max(memory, MIN_MEMORY) }
  }

  #reading(signal: AbortSignal) {
    return { ...this.#working, signal }
  }

  async #scan(context: Context): Promise<Response> {
    const served = this.#served(context.req.param('id')!)
    const query = this.#ask(context, SCAN)
    const trial = await served.open()
    const format = (query.text('format') ?? 'jsonl') as ScanFormat
    const tag = this.#tag(served, context)
    if (has(context, tag)) return context.body(null, 304, { etag: tag })
    const gone = new AbortController()
    const signal = AbortSignal.any([this.#signal(context), gone.signal])
    const wanted: ScanOptions = { ...query.selection, reductions: query.reductions, ...this.#reading(signal) }
    // Errors of the request are reported before the answer begins.
    expectBounded(trial, wanted)
    const chunks = chunksOf(trial, format, wanted)
    const headers = { 'content-type': MEDIA_TYPES[format], etag: tag, 'cache-control': 'private, no-cache' }
    if (context.req.method === 'HEAD') return context.body(null, 200, headers)
    const end = await this.#turns.take(signal)
    return new Response(streamOf(context, chunks, { gone, end }), { headers })
  }

  async #value(context: Context): Promise<Response> {
    const served = this.#served(context.req.param('id')!)
    const query = this.#ask(context, VALUE)
    const trial = await served.open()
    const tensor = trial.tensor(query.text('tensor')!)
    const step = query.integer('step') ?? tensor.steps({ showIncompleteSteps: true }).at(-1)
    if (step === undefined)
      throw new QueryError('StepUnavailable', `${quote(tensor.name)} was saved at no step`, { tensor: tensor.name })
    const worker = query.text('worker')
    const tag = this.#tag(served, context)
    if (has(context, tag)) return context.body(null, 304, { etag: tag })
    const end = await this.#turns.take(this.#signal(context))
    let isStreamed = false
    try {
      const value = await tensor.value(step, { ...(worker !== undefined && { worker }) })
      const headers = { etag: tag, 'cache-control': 'private, no-cache' }
      if ((query.text('format') ?? ('json' satisfies ValueFormat)) === 'npy') {
        isStreamed = true
        return new Response(streamOf(context, npyChunks(value), { end }), {
          headers: {
            ...headers,
            'content-type': 'application/octet-stream',
            'content-disposition': 'attachment; filename="tensor.npy"',
          },
        })
      }
      const { dtype, shape } = value
      const count = shape.reduce((product, size) => product * size, 1)
      if (count > MAX_JSON_ELEMENTS) {
        throw new QueryError(
          'ValueTooLarge',
          `${quote(tensor.name)} has ${count} elements, more than JSON is made of here: ask for format=npy`,
          {
            tensor: tensor.name,
          },
        )
      }
      const body = jsonText({
        tensor: tensor.name,
        step,
        worker: worker ?? tensor.workers(step)[0],
        dtype,
        shape,
        values: value.toNested(),
      })
      return context.body(body, 200, { ...headers, 'content-type': 'application/json' })
    } finally {
      // A stream ends its turn by itself.
      if (!isStreamed) end()
    }
  }
}

const NAME: Parameter = { name: 'tensor', description: 'The whole name of the tensor.', isRequired: true }
const EMBEDDING: readonly Parameter[] = [
  NAME,
  { name: 'labels', description: 'What colours the points.' },
  { name: 'images', description: 'What the model was given.' },
  { name: 'reconstructions', description: 'What it made of that.' },
]
/** The parameters of the page's own requests. */
export const COLUMN: readonly Parameter[] = [
  { name: 'statistic', description: 'Which numbers.', isRequired: true, values: SERVED_STATISTICS },
  { name: 'kind', description: 'Of which kind of tensors.', values: ['all', ...KINDS] },
  { name: 'tensor', description: 'Of this tensor alone.' },
]
