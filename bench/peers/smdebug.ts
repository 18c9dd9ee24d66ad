/**
 * The answers of smdebug's reader and of trialscan to bad trials: every corruption of fixtures/corrupt.ts, and a few more,
 * once in a job that has ended and once in one that was killed before it wrote its end marker. Prints the table of docs/trust.md.
 *
 *     npm run build
 *     PYTHONPATH=/path/to/sagemaker-debugger npx tsx bench/peers/smdebug.ts [--python python3] [--seconds 20]
 *
 * smdebug_reader.py says what smdebug needs. Its reader compares payload checksums with the hook's constant and fails with
 * a NameError otherwise, so all sound records have the constant here. One of the rows
 * is left out for root.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { closePools, createTrial, TrialscanError } from '#dist/index.js'
import {
  type Corruption,
  corruptions,
  PLAIN_TENSORS,
  PLAIN_TRIAL,
  readIndex,
  replaceTensor,
} from '../../fixtures/corrupt.js'
import { eventFilePath, maskedCrc32c } from '../../fixtures/event-writer.js'

const STEPS = [0, 1, 2]
const TOTAL = PLAIN_TENSORS.length * STEPS.length
const CONSTANT = maskedCrc32c(Buffer.from('0x12345678'))

/** Gives records with true payload checksums the constant that the hook writes. */
function asTheHookWrites(dir: string): void {
  for (const step of STEPS) {
    const path = join(dir, eventFilePath(step, 'worker_0'))
    try {
      const bytes = readFileSync(path)
      for (const { start_idx, length } of readIndex(dir, step).tensor_payload) {
        if (!(start_idx + length <= bytes.length) || bytes.readBigUInt64LE(start_idx) !== BigInt(length - 16)) continue
        const end = start_idx + length - 4
        const isTrue = bytes.readUInt32LE(end) === maskedCrc32c(bytes.subarray(start_idx + 12, end))
        if (isTrue) bytes.writeUInt32LE(CONSTANT, end)
      }
      writeFileSync(path, bytes)
    } catch {
      // Nothing there that is sound.
    }
  }
}

/** A damaged trial. */
interface Case {
  readonly name: string
  readonly apply: (dir: string) => void
  /** The values that can't be right any more: `step tensor`. */
  readonly affected: ReadonlySet<string>
  /** The values that are right instead; absent: an error is. */
  readonly right?: readonly string[]
  readonly trueChecksums?: boolean
}

function affectedBy({ error, step, tensors }: Corruption['expect']): ReadonlySet<string> {
  if (error === 'none') return new Set()
  return new Set((step === undefined ? STEPS : [step]).flatMap(step => tensors.map(tensor => `${step} ${tensor}`)))
}

/** Root reads what nobody may read. */
function isPossible({ needsUnprivilegedUser = false }: Corruption): boolean {
  return !needsUnprivilegedUser || process.getuid?.() !== 0
}

const ofStep = (step: number) => new Set(PLAIN_TENSORS.map(tensor => `${step} ${tensor}`))

const CASES: readonly Case[] = [
  ...corruptions.filter(isPossible).map(({ name, apply, expect }) => ({ name, apply, affected: affectedBy(expect) })),
  {
    name: 'event file of the last step missing',
    apply: dir => rmSync(join(dir, eventFilePath(2, 'worker_0'))),
    affected: ofStep(2),
  },
  {
    name: 'collections file of a second worker missing',
    apply: dir => {
      const path = join(dir, 'collections/000000000/worker_0_collections.json')
      writeFileSync(path, readFileSync(path, 'utf8').replace('"num_workers": 1', '"num_workers": 2'))
    },
    affected: new Set(),
  },
  { name: 'no fault, true payload checksums', apply: () => {}, affected: new Set(), trueChecksums: true },
  {
    name: 'no fault, int8 below zero',
    apply: dir => replaceTensor(dir, 1, 'fc.bias', { dtype: 'int8', shape: [5], values: [-1, -2, 3, 4, 5] }),
    affected: new Set(['1 fc.bias']),
    right: ['-1', '-2', '3', '4', '5'],
  },
  {
    name: 'no fault, one value stands for four',
    apply: dir => replaceTensor(dir, 1, 'fc.bias', { dtype: 'float32', shape: [4], values: [7], place: 'packed' }),
    affected: new Set(['1 fc.bias']),
    right: ['7', '7', '7', '7'],
  },
  {
    name: 'no fault, bfloat16',
    apply: dir => replaceTensor(dir, 1, 'fc.bias', { dtype: 'bfloat16', shape: [2], values: [1, 2] }),
    affected: new Set(['1 fc.bias']),
    right: ['1', '2'],
  },
]

// ------------------------------------------------------------------------------------------------------------- answers

type Answer =
  | { readonly elements: readonly string[]; readonly shape: readonly number[] | null }
  | { readonly error: string }

/** A reader's answers about a trial. Missing values were never answered. */
interface Told {
  readonly opening: string | null
  readonly hangs: boolean
  readonly answers: ReadonlyMap<string, Answer>
}

/** Elements as they read alike in Python and here. */
function spelled(element: unknown): string {
  const number = typeof element === 'bigint' ? element : Number(element)
  return typeof element === 'bigint' || Number.isNaN(number) ? String(element) : String(number)
}

async function askTrialscan(dir: string): Promise<Told> {
  const answers = new Map<string, Answer>()
  let trial: Awaited<ReturnType<typeof createTrial>>
  try {
    trial = await createTrial(dir)
  } catch (error) {
    return { opening: errorName(error), hangs: false, answers }
  }
  for (const step of STEPS) {
    for (const tensor of PLAIN_TENSORS) {
      try {
        const { data, shape } = await trial.tensor(tensor).value(step)
        answers.set(`${step} ${tensor}`, { elements: Array.from(data as ArrayLike<unknown>, spelled), shape })
      } catch (error) {
        answers.set(`${step} ${tensor}`, { error: errorName(error) })
      }
    }
  }
  await trial.close()
  return { opening: null, hangs: false, answers }
}

function errorName(error: unknown): string {
  if (!(error instanceof TrialscanError)) throw error
  return error.name
}

interface Line {
  readonly open?: { readonly error: string } | null
  readonly tensor?: string
  readonly step?: number
  readonly value?: readonly [string, number[] | null, string | string[]]
  readonly error?: string
}

function askSmdebug(dirs: readonly string[], python: string, seconds: number): Told[] {
  const script = join(import.meta.dirname, 'smdebug_reader.py')
  const out = execFileSync(python, [script, String(seconds)], { input: `${dirs.join('\n')}\n`, maxBuffer: 1 << 28 })
  return String(out)
    .split('\n')
    .filter(line => line.startsWith('{"path"'))
    .map(text => {
      const { ended, lines } = JSON.parse(text) as { ended: string; lines: Line[] }
      const answers = new Map<string, Answer>()
      let opening: string | null = ended === 'hang' ? 'hang' : null
      for (const { open, tensor, step, value, error } of lines) {
        if (open !== undefined) opening = open?.error ?? null
        else if (error !== undefined) answers.set(`${step} ${tensor}`, { error })
        else if (value !== undefined) {
          const [, shape, items] = value
          answers.set(`${step} ${tensor}`, { elements: (Array.isArray(items) ? items : [items]).map(spelled), shape })
        }
      }
      if (!['ended', 'hang'].includes(ended)) opening = `the process ends with ${ended}`
      return { opening, hangs: ended === 'hang', answers }
    })
}

// ------------------------------------------------------------------------------------------------------------ judgement

const same = (a: Answer | undefined, b: Answer) => JSON.stringify(a) === JSON.stringify(b)

const UNNOTICED = 'right value, unnoticed'

/** In words: what became of the values that are affected, and how many others were lost. */
function judged(outcome: Told, sound: Told, { affected, right }: Case): string {
  if (outcome.opening !== null) {
    const what = outcome.opening === 'hang' ? '**hangs**' : `${outcome.opening}`
    return `opening: ${what}${affected.size === TOTAL ? '' : `; all ${TOTAL} values lost`}`
  }
  const kinds = new Set<string>()
  let lost = 0
  let wrong = 0
  for (const [key, good] of sound.answers) {
    const answer = outcome.answers.get(key)
    if (!affected.has(key)) {
      if (answer === undefined || 'error' in answer) lost++
      else if (!same(answer, good)) wrong++
    } else if (answer === undefined) kinds.add('**hangs**')
    else if ('error' in answer) kinds.add(answer.error)
    else if (right !== undefined) kinds.add(isRight(answer.elements, right) ? 'right value' : '**wrong value**')
    else kinds.add(same(answer, good) ? UNNOTICED : '**wrong value**')
  }
  const isWhole = affected.size === 0 || (affected.size === TOTAL && kinds.size === 1 && kinds.has(UNNOTICED))
  if (isWhole) kinds.delete(UNNOTICED)
  if (isWhole && lost + wrong === 0) kinds.add('right values')
  if (kinds.has('**hangs**')) kinds.delete('TensorUnavailableForStep')
  const parts = [...kinds]
  if (wrong > 0) parts.push(`**${wrong} other values wrong**`)
  if (lost > 0)
    parts.push(
      affected.size > 0 ? `${lost} of ${TOTAL - affected.size} others lost` : `${lost} of ${TOTAL} values lost`,
    )
  return parts.join('; ')
}

const isRight = (elements: readonly string[], right: readonly string[]) => elements.join() === right.join()

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { python: { type: 'string', default: 'python3' }, seconds: { type: 'string', default: '20' } },
  })
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-smdebug-'))
  try {
    const make = (
      name: string,
      { apply, trueChecksums = false }: Pick<Case, 'apply' | 'trueChecksums'>,
      ended: boolean,
    ) => {
      const dir = join(scratch, name)
      cpSync(PLAIN_TRIAL, dir, { recursive: true })
      if (!ended) rmSync(join(dir, 'training_job_end.ts'))
      if (!trueChecksums) asTheHookWrites(dir)
      apply(dir)
      if (!trueChecksums && existsSync(dir)) asTheHookWrites(dir)
      return dir
    }
    const dirs = [true, false].flatMap(ended => [
      make(`sound-${ended}`, { apply: () => {} }, ended),
      ...CASES.map((item, i) => make(`${i}-${ended}`, item, ended)),
    ])
    const ours: Told[] = []
    for (const dir of dirs) ours.push(await askTrialscan(dir))
    const theirs = askSmdebug(dirs, values.python, Number(values.seconds))
    const half = dirs.length / 2
    for (const outcomes of [ours, theirs]) {
      if (outcomes[0]!.answers.size !== TOTAL || [...outcomes[0]!.answers.values()].some(answer => 'error' in answer))
        throw new Error(
          `the sound trial can't be read: ${JSON.stringify([...outcomes[0]!.answers])} ${outcomes[0]!.opening}`,
        )
    }
    for (const [key, answer] of ours[0]!.answers) {
      const elements = (answer: Answer | undefined) => answer && 'elements' in answer && answer.elements.join()
      if (elements(answer) !== elements(theirs[0]!.answers.get(key)))
        throw new Error(`${key} differs in the sound trial`)
    }
    console.log('| fault | smdebug | trialscan |\n|---|---|---|')
    for (const [i, item] of CASES.entries()) {
      const both = (outcomes: readonly Told[]) => {
        const [ended, killed] = [0, half].map(from => judged(outcomes[from + 1 + i]!, outcomes[from]!, item))
        return ended === killed ? ended! : `${ended}; killed job: ${killed}`
      }
      console.log(`| ${item.name} | ${both(theirs)} | ${both(ours)} |`)
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  await closePools()
}

await main()
