/** `trialscan show --steps`: the distribution of a tensor's elements, one line per step. */

import { UsageError } from '../../base/errors.js'
import type { Mode } from '../../base/types.js'
import { Distribution } from '../../core/statistics/distribution.js'
import type { ScanRow } from '../../scan/job/row.js'
import { EXIT } from '../exit.js'
import { blocks, spread } from '../format/bars.js'
import { counted, shortNumber } from '../format/number.js'
import type { PictureName } from '../format/view/picture.js'
import type { StepsText } from '../options/arguments.js'
import { defined, type OutputFlags, type settle } from '../options/given.js'
import { expectS3, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { withTrial } from '../scan/trials.js'
import { colorsFor, columns, note, safe, safeName } from '../terminal.js'

const BINS = 48
/** The number of lines. Of more steps, evenly chosen ones are shown. */
const MAX_LINES = 60
/** The share of elements at each end that widen no bin, since they may lie far away from all others. */
const TAIL = 0.001

/** The options of show. */
export interface ShowFlags extends S3Flags, OutputFlags<'show'> {
  readonly step?: number
  readonly modeStep?: number
  readonly mode?: Mode
  readonly worker?: string
  readonly npy?: string
  readonly picture?: PictureName
  readonly steps?: StepsText
}

type Settled = ReturnType<typeof settle<'show', ShowFlags>> & { readonly steps: StepsText }

/** @returns the exit code */
export async function showRidge(path: string, name: string, flags: Settled): Promise<number> {
  const { steps, step, modeStep, mode, worker, npy, format, out, onTerminal } = flags
  const other = Object.entries({ '--step': step, '--mode-step': modeStep, '--npy': npy }).find(
    ([, given]) => given !== undefined,
  )
  if (other) throw new UsageError(`expected --steps or ${other[0]}, got both`)
  if (format !== 'table')
    throw new UsageError(
      `expected --steps with --format table, got ${format}: trialscan scan --reductions sketch has the numbers`,
    )
  expectS3(flags, [path])
  return withTrial(path, flags, async trial => {
    const { name: tensor } = trial.tensor(name)
    const scan = trial.scan({
      tensors: tensor,
      steps: steps.selection,
      reductions: ['sketch'],
      ...defined({ mode, workers: worker }),
    })
    const rows: ScanRow[] = []
    let failed: string | null = null
    for await (const row of scan) {
      if (row.reductions.sketch instanceof Distribution) rows.push(row)
      else failed ??= row.error?.message ?? `only reductions of ${tensor} were saved`
    }
    if (rows.length === 0) {
      note(failed ?? `${tensor} was saved at none of the steps ${steps.text}`)
      return failed === null ? EXIT.query : EXIT.format
    }
    const shown = spread(rows, MAX_LINES)
    const colors = colorsFor(onTerminal ? process.stdout : null)
    const head = `${colors.bold(safeName(tensor))} at ${counted(rows.length, 'step')}${shown.length < rows.length ? `, of which ${shown.length} are shown` : ''}\n`
    await writeTo(out, output => output.writeAll([head, ridgeText(shown, trial.workers().length > 1)]))
    if (failed !== null) note(failed)
    return failed === null ? EXIT.ok : EXIT.format
  })
}

function ridgeText(rows: readonly ScanRow[], hasWorkers: boolean): string {
  const finite = rows.map(row => {
    const sketch = row.reductions.sketch as Distribution
    const data = sketch.toJSON()
    const count = data.counts.reduce((sum, some) => sum + some, 0)
    const others = { nan_count: 0, positive_infinity_count: 0, negative_infinity_count: 0 }
    return { row, lost: sketch.count - count, of: Distribution.from({ ...data, ...others, count }) }
  })
  const some = finite.filter(({ of: distribution }) => distribution.count > 0)
  const low = some.reduce(
    (least, { of: distribution }) => Math.min(least, distribution.quantile(tailOf(distribution))),
    Number.POSITIVE_INFINITY,
  )
  const high = some.reduce(
    (most, { of: distribution }) => Math.max(most, distribution.quantile(1 - tailOf(distribution))),
    Number.NEGATIVE_INFINITY,
  )
  const [from, to] = low < high ? [low, high] : [low - 1, low + 1]
  const edges = Array.from({ length: BINS + 1 }, (_, i) => from * (1 - i / BINS) + to * (i / BINS))
  const lines = finite.map(({ row, lost, of: distribution }) => {
    const { step, mode, modeStep, worker } = row
    return [
      `  ${step}`,
      ...(mode === 'GLOBAL' ? [] : [`${mode} ${modeStep}`]),
      ...(hasWorkers ? [safe(worker)] : []),
      `▕${distribution.count === 0 ? ' '.repeat(BINS) : blocks(distribution.histogram(edges).counts)}▏`,
      lost > 0 ? `${counted(lost, 'element')} NaN or infinite` : '',
    ]
  })
  return `${columns(lines, [0])}  from ${shortNumber(from)} to ${shortNumber(to)}\n`
}

/** The share of elements at each end beyond the bins; none if there are few elements. */
function tailOf({ count }: Distribution): number {
  return Math.floor(TAIL * (count - 1)) / Math.max(1, count - 1)
}
