/** Logs of nvdlfw-inspect, in which Transformer Engine writes statistics: `decoder.1.mlp_activation_max iteration=000100 value=1.5`. */

import type { ReductionName } from '../../../base/types.js'
import type { RangedFile, StoredTensor, TensorFileContents, TensorFormat } from '../stored-tensor.js'
import { savedReduction, savedScalar } from './saved-statistics.js'

const PATH = /(?:^|\/)nvdlfw_inspect_globalrank-(\d+)\.log$/
/** The directory of logs without statistics, whose files have the same names. */
const OTHER_LOGS = /(?:^|\/)nvdlfw_inspect_logs\/[^/]*$/
const LINE = /^(?:.*\bINFO\b[\s-]*)?(\S+)\s+iteration=(\d+)\s+value=(\S+)\s*$/
/** Statistics that are reductions, by how names end. */
const STATISTICS: Readonly<Record<string, ReductionName>> = {
  min: 'min',
  max: 'max',
  mean: 'mean',
  std: 'std',
  l1_norm: 'l1',
  l2_norm: 'l2',
  cur_amax: 'abs_max',
}
const WINDOW_BYTES = 4 << 20
/** Longer lines hold no statistics. */
const MAX_LINE_LENGTH = 64 << 10

export const NVDLFW: TensorFormat = {
  kind: 'nvdlfw-inspect',
  byName: path => (PATH.test(path) && !OTHER_LOGS.test(path) ? 'yes' : 'no'),
  matches: () => false,

  async read(file) {
    const worker = `rank_${Number(PATH.exec(file.path)?.[1] ?? 0)}`
    // After a restart, the later value of a step counts.
    const tensors = new Map<string, StoredTensor>()
    for await (const line of linesOf(file)) {
      const tensor = tensorOf(line, worker)
      if (tensor !== null) tensors.set(`${tensor.step} ${tensor.name}`, tensor)
    }
    return { tensors: [...tensors.values()], unread: [], problems: [], hasFullNames: true } satisfies TensorFileContents
  },
}

function tensorOf(line: string, worker: string): StoredTensor | null {
  const [, name, iteration, text] = LINE.exec(line) ?? []
  if (name === undefined || iteration === undefined || text === undefined) return null
  const [step, value] = [Number(iteration), numberOf(text)]
  if (!Number.isSafeInteger(step) || value === null) return null
  for (const [ending, reduction] of Object.entries(STATISTICS)) {
    if (name.length > ending.length + 1 && name.endsWith(`_${ending}`)) {
      return savedReduction(reduction, name.slice(0, -ending.length - 1), value, { worker, step })
    }
  }
  return savedScalar(name, value, { worker, step })
}

/** A number as Python writes it. */
function numberOf(text: string): number | null {
  const named = /^([-+]?)(nan|inf|infinity)$/i.exec(text)
  if (named) {
    if (named[2]!.toLowerCase() === 'nan') return Number.NaN
    return named[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  }
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(text) ? Number(text) : null
}

/** The lines of a file, of which a window is in memory. A last line without an end is still being written. */
async function* linesOf(file: RangedFile): AsyncGenerator<string> {
  let rest = ''
  const decoder = new TextDecoder()
  for (let at = 0; at < file.byteLength; at += WINDOW_BYTES) {
    const bytes = await file.read(at, Math.min(WINDOW_BYTES, file.byteLength - at))
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    // What is kept of a line that is too long stays too long.
    rest = lines.pop()!.slice(0, MAX_LINE_LENGTH + 1)
    yield* lines.filter(line => line.length <= MAX_LINE_LENGTH)
  }
}
