/** `trialscan verify`: what is wrong with the bytes of a trial. */

import { UsageError } from '../../base/errors.js'
import type { VerifyProblem } from '../../integrity/verify/problem.js'
import { verifyTrial } from '../../integrity/verify/verify.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { type VerifyFormat, verifyCsv, verifyJsonl } from '../format/verify-lines.js'
import { verifyTable } from '../format/verify-table.js'
import { inputPieces, noteInput } from '../input-file.js'
import { settle } from '../options/given.js'
import { expectS3, placeOptions, type S3Flags } from '../options/s3.js'
import { Lines, writeTo } from '../output.js'
import { Progress } from '../progress.js'
import { expectOutside, expectReplaceable } from '../real-path.js'
import { Losses, trialsAt } from '../scan/trials.js'
import { colorsFor } from '../terminal.js'

export interface VerifyFlags extends S3Flags {
  readonly deep?: boolean
  readonly values?: boolean
  readonly digests?: string
  readonly record?: string
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
  const { digests, record } = flags
  if (paths.length > 1 && (digests ?? record) !== undefined) {
    throw new UsageError(
      `expected one trial beside --${digests === undefined ? 'record' : 'digests'}, got ${paths.length}`,
    )
  }
  if (digests !== undefined) await noteInput(digests)
  if (record !== undefined) await expectReplaceable(paths[0]!, record, '--record')
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
            losses.outcome(
              record === undefined
                ? await verifyOne(path, flags, format, lines, null, signal)
                : await writeTo(record, async listed => {
                    const digests = new Lines(listed)
                    const code = await verifyOne(path, flags, format, lines, digests, signal)
                    await digests.done()
                    return code
                  }),
            )
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
  listed: Lines | null,
  signal: AbortSignal,
): Promise<number> {
  const { deep = false, values = false, digests, threads, memory } = flags
  const verification = await verifyTrial(path, {
    ...placeOptions(path, flags),
    ...(threads !== undefined && { threads }),
    ...(memory !== undefined && { memory: memory * 2 ** 20 }),
    deep,
    values,
    ...(digests !== undefined && { digests: inputPieces(digests, '--digests') }),
    // Whoever waits for the lines gets the error.
    ...(listed && { onDigest: (line: string) => void listed.write(line).catch(() => {}) }),
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
