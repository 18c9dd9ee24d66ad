/** `trialscan reindex`: writes index files for a trial that has lost them, or never had any. */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../../base/errors.js'
import { type ReindexedFile, reindexTrial } from '../../integrity/repair/reindex.js'
import { realPath } from '../../storage/local/real-path.js'
import { EXIT } from '../exit.js'
import type { FormatOf } from '../format/formats.js'
import { csvLine, jsonLine } from '../format/lines.js'
import { counted } from '../format/number.js'
import { defined, settle } from '../options/given.js'
import { onlyPlaceOptions, type S3Flags } from '../options/s3.js'
import { writeFile, writeTo } from '../output.js'
import { expectOutside } from '../real-path.js'
import { safe } from '../terminal.js'

export interface ReindexFlags extends S3Flags {
  readonly out: string
  readonly threads?: number
  readonly format?: FormatOf<'reindex'>
}

/** @returns the exit code */
export async function reindex(path: string, given: ReindexFlags, signal: AbortSignal): Promise<number> {
  const flags = settle('reindex', path, given)
  const { out, threads } = flags
  await expectOutside(path, out, 'a directory')
  const files = await reindexTrial(path, {
    ...onlyPlaceOptions(path, flags),
    ...defined({ threads }),
  })
  for (const { path, text } of files) {
    signal.throwIfAborted()
    await expectNoLink(out, path)
    await writeFile(join(out, path), [text])
  }
  await writeTo(undefined, output => output.write(reindexedText(path, out, files, flags.format, flags.onTerminal)))
  return EXIT.ok
}

function reindexedText(
  trial: string,
  out: string,
  files: readonly ReindexedFile[],
  format: FormatOf<'reindex'>,
  onTerminal: boolean,
): string {
  const listed = files.map(({ path, step, worker, text }) => ({
    file: path,
    step,
    worker,
    bytes: Buffer.byteLength(text),
  }))
  switch (format) {
    case 'table':
      return `wrote ${counted(files.length, 'index file')} to ${safe(join(out, 'index'))}\n`
    case 'json':
      return jsonLine({ trial, out, files: listed }, true)
    case 'jsonl':
      return listed.map(file => jsonLine(file, true)).join('')
    case 'csv': {
      const rows = listed.map(({ file, step, worker, bytes }) => [file, step, worker, bytes])
      return [['file', 'step', 'worker', 'bytes'], ...rows].map(cells => csvLine(cells, onTerminal)).join('')
    }
  }
}

/** Refuses to write index files through links. */
async function expectNoLink(out: string, path: string): Promise<void> {
  const [wanted, real] = [join(await realPath(out), path), await realPath(join(out, path))]
  if (real === wanted) return
  const target = join(out, path)
  throw new StoreError('Denied', `cannot write ${target}: a symbolic link leads to ${real}`, {
    url: pathToFileURL(target).href,
  })
}
