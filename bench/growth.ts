/**
 * The growth of cost: `npm run bench:growth` measures whole processes over trials of growing size and draws ../docs/pictures/growth.svg,
 * CPU time and peak memory on logarithmic axes. It takes about ten minutes and 5 GB of temporary disk space; `--quick` takes a minute,
 * measures smaller trials and draws nothing.
 */

import { cpSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeLarge, makeMany, makeSteps } from '../fixtures/make.js'
import { sparseZeros } from './checkpoints.js'
import { COMMAND } from './package.js'
import { endAnswerers, runProcess } from './processes.js'
import { scratchPath } from './scratch.js'
import { filesUnder } from './trials.js'

const ROUNDS = 3
const PEAK_MEMORY = fileURLToPath(new URL('children/peak-memory.mjs', import.meta.url))
const PICTURE = fileURLToPath(new URL('../docs/pictures/growth.svg', import.meta.url))
const SMALL_TRIAL = fileURLToPath(new URL('../fixtures/trials/mlp-all-zero', import.meta.url))
const SMALL_TRIAL_ROWS = 60

/** A trial, or a directory of trials, of one size, and how many rows a scan of it has. */
interface Input {
  readonly size: number
  readonly dir: string
  readonly rows: number
}

interface Series {
  readonly title: string
  /** Several threads are simulated: what a scan takes beyond `ls`, which opens the trial on one, is divided among them. */
  readonly areThreads?: true
  /** The unit of the sizes. */
  readonly unit: string
  readonly sizes: readonly number[]
  readonly make: (size: number) => Input
}

interface Point {
  readonly size: number
  /** CPU time of all threads, user and system. */
  readonly seconds: number
  readonly megabytes: number
}

const isQuick = process.argv.includes('--quick')
const smaller = isQuick ? 10 : 1

const SERIES: readonly Series[] = [
  {
    title: 'Elements',
    unit: 'GB of float32 in tensors of up to 9 MB',
    sizes: [0.1, 1, 10].map(size => size / smaller),
    make: size => {
      const dir = scratchPath(`bytes-${size}`)
      // 1.02 GB; ten times that is the same files, as if ten workers had saved them.
      const { tensors, steps } = makeLarge(dir, { scale: Math.min(1, size) })
      const workers = size > 1 ? Math.round(size) : 1
      if (workers > 1) asIfOf(workers, dir)
      return { size, dir, rows: tensors.length * steps.length * workers }
    },
  },
  {
    title: 'Checkpoints',
    unit: 'GB of bfloat16 in one file',
    sizes: [0.2, 2, 20].map(size => size / smaller),
    make: size => {
      const tensors = 10
      return { size, dir: sparseZeros(tensors, (size / tensors) * 20_000), rows: tensors }
    },
  },
  {
    title: 'Tensors',
    unit: 'tensors of 1 KB, 201 at each step',
    sizes: [1e3, 1e5, 1e6].map(size => size / smaller),
    make: size => {
      const dir = scratchPath(`tensors-${size}`)
      const { tensors, steps } = makeMany(dir, { steps: Math.round(size / 201) })
      return { size, dir, rows: tensors.length * steps.length }
    },
  },
  {
    title: 'Steps',
    unit: 'steps of three scalars',
    sizes: [1e2, 1e4, 1e5].map(size => size / smaller),
    make: size => {
      const dir = scratchPath(`steps-${size}`)
      const { tensors, steps } = makeSteps(dir, { steps: size })
      return { size, dir, rows: tensors.length * steps.length }
    },
  },
  {
    title: 'Workers',
    unit: 'workers, 51 MB each',
    sizes: [1, 8, 64],
    make: size => {
      const dir = scratchPath(`workers-${size}`)
      const { tensors, steps } = makeLarge(dir, { scale: 0.05 / smaller })
      if (size > 1) asIfOf(size, dir)
      return { size, dir, rows: tensors.length * steps.length * size }
    },
  },
  {
    title: 'Trials',
    unit: `trials of ${SMALL_TRIAL_ROWS} tensors`,
    sizes: isQuick ? [1, 10, 100] : [1, 10, 100, 1000],
    make: size => {
      const dir = scratchPath(`trials-${size}`)
      for (let i = 0; i < size; i++) cpSync(SMALL_TRIAL, join(dir, String(i).padStart(4, '0')), { recursive: true })
      return { size, dir, rows: size * SMALL_TRIAL_ROWS }
    },
  },
  {
    title: 'Threads',
    areThreads: true,
    unit: 'threads, simulated, over 1 GB',
    sizes: [1, 2, 4, 8, 16],
    make: size => {
      const dir = scratchPath(`threads-${size}`)
      const { tensors, steps } = makeLarge(dir, { scale: 1 / smaller })
      return { size, dir, rows: tensors.length * steps.length }
    },
  },
]

/** Adds workers to a trial of one, whose event files are links to its own. */
function asIfOf(workers: number, dir: string): void {
  for (const path of filesUnder(dir)) {
    const text = path.startsWith('events') ? '' : readFileSync(join(dir, path), 'utf8')
    for (let worker = path.includes('worker_0') ? 0 : workers; worker < workers; worker++) {
      const copy = join(dir, path.replace('worker_0', `worker_${worker}`))
      mkdirSync(dirname(copy), { recursive: true })
      if (!path.startsWith('events')) {
        const many = text.replace('"num_workers": 1', `"num_workers": ${workers}`)
        writeFileSync(copy, many.replace('worker_0', `worker_${worker}`))
      } else if (worker > 0) linkSync(join(dir, path), copy)
    }
  }
}

/** The best of some rounds; that all rows are there is checked in each. */
async function measured({ areThreads }: Series, { size, dir, rows }: Input): Promise<Point> {
  const out = scratchPath('growth.csv')
  const threads = areThreads ? ['--threads', String(size)] : []
  const command = ['scan', dir, '--reductions', 'all', '--format', 'csv', '--out', out, ...threads]
  let [best, megabytes] = [Number.POSITIVE_INFINITY, 0]
  for (let round = 0; round < ROUNDS; round++) {
    const { stderr } = await run(command)
    const lines = readFileSync(out).reduce((count, byte) => count + Number(byte === 0x0a), 0)
    if (lines !== rows + 1) throw new Error(`${dir}: expected ${rows} rows, got ${lines - 1}`)
    const { seconds, kibibytes } = peaksOf(stderr)
    const alone = areThreads ? peaksOf((await run(['ls', dir])).stderr).seconds : seconds
    best = Math.min(best, alone + (seconds - alone) / size)
    megabytes = Math.max(megabytes, (kibibytes * 1024) / 1e6)
  }
  return { size, seconds: best, megabytes }
}

function run(command: readonly string[]) {
  return runProcess([process.execPath, '--import', PEAK_MEMORY, COMMAND, ...command])
}

/** The output of children/peak-memory.mjs. */
function peaksOf(stderr: string): { readonly seconds: number; readonly kibibytes: number } {
  const [, kibibytes, seconds] = /peak memory: (\d+) KiB\nCPU: (\S+) s/.exec(stderr)!.map(Number)
  return { seconds: seconds!, kibibytes: kibibytes! }
}

/** The slope between the last two points on logarithmic axes: 1 where twice as much takes twice as long. */
function slopeOf(points: readonly Point[], numberOf: (point: Point) => number): number {
  const [a, b] = points.slice(-2) as [Point, Point]
  return Math.log(numberOf(b) / numberOf(a)) / Math.log(b.size / a.size)
}

// ---------------------------------------------------------------------------------------------------- The picture

const [WIDTH, HEIGHT] = [300, 230]
const [LEFT, TOP, RIGHT, BOTTOM] = [46, 46, 14, 40]
const compact = new Intl.NumberFormat('en', { notation: 'compact' })
const COLORS = { seconds: '#2a6fdb', megabytes: '#c2571a' }

function picture(all: readonly { readonly series: Series; readonly points: readonly Point[] }[]): string {
  const about = `${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model.trim()}), files in the page cache, best of ${ROUNDS} runs`
  const panels = all.map(({ series, points }, i) => panel(series, points, (i % 2) * WIDTH, 48 + (i >> 1) * HEIGHT))
  const rows = Math.ceil(all.length / 2)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${2 * WIDTH} ${rows * HEIGHT + 78}" font-family="system-ui, sans-serif" font-size="11">
<title>How the cost of a scan grows</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="14" y="20" font-size="13" font-weight="600" fill="#1d2430">trialscan scan --reductions all, the whole process</text>
<g fill="${COLORS.seconds}"><circle cx="18" cy="36" r="4"/><text x="27" y="40">seconds of CPU</text></g>
<g fill="${COLORS.megabytes}"><circle cx="132" cy="36" r="4"/><text x="141" y="40">MB of memory, at most</text></g>
${panels.join('\n')}
<text x="14" y="${rows * HEIGHT + 66}" fill="#68717f" font-size="9.5">${about}</text>
</svg>
`
}

function panel({ title, unit }: Series, points: readonly Point[], left: number, top: number): string {
  const [x0, x1] = [Math.log10(points[0]!.size), Math.log10(points.at(-1)!.size)]
  // One axis for both, five powers of ten: 0.01 to 1,000.
  const [y0, y1] = [-1.5, 3]
  const x = (size: number) => LEFT + ((Math.log10(size) - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT)
  const y = (value: number) => TOP + ((y1 - Math.log10(value)) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM)
  const ticks = [0.1, 1, 10, 100, 1000].map(value => {
    const line = `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}" stroke="#e3e6ea"/>`
    return `${line}<text x="${LEFT - 6}" y="${y(value) + 4}" text-anchor="end" fill="#68717f">${short(value)}</text>`
  })
  const anchorOf = (point: Point) => (point === points[0] ? 'start' : point === points.at(-1) ? 'end' : 'middle')
  const sizes = points.map(point => {
    const at = `x="${x(point.size)}" y="${HEIGHT - BOTTOM + 15}" text-anchor="${anchorOf(point)}"`
    return `<text ${at} fill="#68717f">${compact.format(point.size)}</text>`
  })
  const lines = (['seconds', 'megabytes'] as const).map(name => {
    const color = COLORS[name]
    const path = points.map(point => `${x(point.size).toFixed(1)},${y(point[name]).toFixed(1)}`).join(' ')
    const marks = points.map(point => {
      const [at, over] = [x(point.size), y(point[name])]
      return `<circle cx="${at.toFixed(1)}" cy="${over.toFixed(1)}" r="3.5"/><text x="${at.toFixed(1)}" y="${(over - 8).toFixed(1)}" text-anchor="${anchorOf(point)}">${short(point[name])}</text>`
    })
    return `<g fill="${color}"><polyline points="${path}" fill="none" stroke="${color}" stroke-width="1.5"/>${marks.join('')}</g>`
  })
  const [time, memory] = [slopeOf(points, ({ seconds }) => seconds), slopeOf(points, ({ megabytes }) => megabytes)]
  const said = (slope: number) =>
    slope
      .toFixed(2)
      .replace(/^-(?=0\.00)/, '')
      .replace('-', '−')
  const slope = `slope at the end: time ${said(time)}, memory ${said(memory)}`
  return `<g transform="translate(${left} ${top})">
<text x="${LEFT - 32}" y="16" font-weight="600" fill="#1d2430">${title}</text>
<text x="${LEFT - 32}" y="31" fill="#68717f">${slope}</text>
${[...ticks, ...sizes, ...lines].join('\n')}
<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - BOTTOM + 30}" text-anchor="middle" fill="#68717f">${unit}</text>
</g>`
}

function short(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString('en-GB')
}

const all: { series: Series; points: Point[] }[] = []
for (const series of SERIES) {
  const points: Point[] = []
  for (const size of series.sizes) {
    const input = series.make(size)
    const point = await measured(series, input)
    points.push(point)
    console.log(`${series.title} ${short(size)}: ${point.seconds.toFixed(2)} s, ${point.megabytes.toFixed(0)} MB`)
    rmSync(input.dir, { recursive: true })
  }
  all.push({ series, points })
  const [time, memory] = [slopeOf(points, ({ seconds }) => seconds), slopeOf(points, ({ megabytes }) => megabytes)]
  console.log(`${series.title}: slopes at the end ${time.toFixed(2)} (time), ${memory.toFixed(2)} (memory)`)
}
if (!isQuick) writeFileSync(PICTURE, picture(all))
endAnswerers()
