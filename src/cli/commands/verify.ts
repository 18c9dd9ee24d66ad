/** `trialscan verify`: what is wrong with the bytes of a trial. */

import type { VerifyProblem } from '../../integrity/verify/problem.js'
import { verifyTrial } from '../../integrity/verify/verify.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { type VerifyFormat, verifyCsv, verifyJsonl } from '../format/verify-lines.js'
import { verifyTable } from '../format/verify-table.js'
import { settle } from '../options/given.js'
import { expectS3, placeOptions, type S3Flags } from '../options/s3.js'
import { Lines, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectOutside } from '../real-path.js'
import { Losses, trialsAt } from '../scan/trials.js'
import { colorsFor } from '../terminal.js'

export interface VerifyFlags extends S3Flags {
  readonly deep?: boolean
  readonly values?: boolean
  readonly format?: FormatOf<'verify'>
  readonly threads?: number
  readonly memory?: number
  readonly failFast?: boolean
  readonly out?: string
}

/** @returns the exit code */
export async function verify(places: readonly string[], given: VerifyFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('verify', places[0]!, given)
  const { out } = flags
  expectS3(flags, places)
  const paths = await trialsAt(places, flags)
  const format = verifyFormat(paths.length === 1, flags.format, flags.onTerminal)
  if (out !== undefined) for (const path of paths) await expectOutside(path, out, 'a file')
  const losses = new Losses(paths, flags.failFast)
  const progress = new Progress(flags.onTerminal, 'trials')
  try {
    return await writeTo(out, async output => {
      const lines = new Lines(output)
      try {
        await lines.write(format.head)
        for (const [i, path] of paths.entries()) {
          try {
            losses.outcome(await verifyOne(path, flags, format, lines, signal))
          } catch (error) {
            signal.throwIfAborted()
            await lines.done()
            losses.trial(path, error)
          }
          if (paths.length > 1) progress.update({ doneRows: i + 1, totalRows: paths.length })
        }
        losses.expectSome()
      } finally {
        await lines.done().catch(() => {})
      }
      await output.flush()
      progress.stop()
      return losses.tell()
    })
  } finally {
    progress.stop()
  }
}

async function verifyOne(
  path: string,
  flags: VerifyFlags,
  format: VerifyFormat,
  lines: Lines,
  signal: AbortSignal,
): Promise<number> {
  const { deep = false, values = false, threads, memory } = flags
  const verification = await verifyTrial(path, {
    ...placeOptions(path, flags),
    ...(threads !== undefined && { threads }),
    ...(memory !== undefined && { memory: memory * 2 ** 20 }),
    deep,
    values,
    signal,
    onProblem: (problem: VerifyProblem) => {
      // Whoever waits for the lines gets the error.
      lines.write(format.line(path, problem)).catch(() => {})
    },
  })
  await lines.write(format.end(path, verification))
  return verification.ok ? EXIT.ok : EXIT.format
}

function verifyFormat(isOnly: boolean, format: FormatOf<'verify'>, onTerminal: boolean): VerifyFormat {
  if (format === 'jsonl') return verifyJsonl(isOnly, onTerminal)
  if (format === 'csv') return verifyCsv(isOnly, onTerminal)
  const columns = onTerminal ? process.stdout.columns : undefined
  return verifyTable(isOnly, columns, colorsFor(onTerminal ? process.stdout : null))
}
