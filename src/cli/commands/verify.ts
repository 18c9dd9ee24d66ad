/** `trialscan verify`: what is wrong with the bytes of a trial. */

import { type VerifyProblem, verifyTrial } from '../../index.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { type VerifyFormat, verifyCsv, verifyJsonl } from '../format/verify-lines.js'
import { verifyTable } from '../format/verify-table.js'
import { settle } from '../options/given.js'
import { type S3Flags, s3OptionsFor } from '../options/s3.js'
import { writeTo } from '../output.js'
import { expectOutside } from '../real-path.js'
import { colorsFor } from '../terminal.js'

export interface VerifyFlags extends S3Flags {
  readonly deep?: boolean
  readonly format?: FormatOf<'verify'>
  readonly threads?: number
  readonly memory?: number
  readonly out?: string
}

/** @returns the exit code */
export async function verify(path: string, given: VerifyFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('verify', path, given)
  const { deep = false, threads, memory, out } = flags
  const s3 = s3OptionsFor(path, flags)
  const format = verifyFormat(flags.format, flags.onTerminal)
  if (out !== undefined) await expectOutside(path, out, 'a file')
  return writeTo(out, async output => {
    let written = Promise.resolve()
    const write = (text: string): Promise<void> => {
      if (text !== '') written = written.then(() => output.write(text))
      return written
    }
    try {
      await write(format.head)
      const verification = await verifyTrial(path, {
        ...s3,
        ...(threads !== undefined && { threads }),
        ...(memory !== undefined && { memory: memory * 2 ** 20 }),
        deep,
        signal,
        onProblem: (problem: VerifyProblem) => {
          // The last write reports the error.
          write(format.line(problem)).catch(() => {})
        },
      })
      await write(format.end(path, verification))
      return verification.ok ? EXIT.ok : EXIT.format
    } finally {
      await written.catch(() => {})
    }
  })
}

function verifyFormat(format: FormatOf<'verify'>, onTerminal: boolean): VerifyFormat {
  if (format === 'jsonl') return verifyJsonl(onTerminal)
  if (format === 'csv') return verifyCsv(onTerminal)
  return verifyTable(onTerminal ? process.stdout.columns : undefined, colorsFor(onTerminal ? process.stdout : null))
}
