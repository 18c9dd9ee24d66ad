/** Problems of a trial for people: file by file, what was expected and found, what is lost, and what to do. */

import { entryOf } from '../../base/maps.js'
import type { VerifyProblem } from '../../integrity/verify/problem.js'
import type { Verification } from '../../integrity/verify/verify.js'
import { type Colors, safe, wrapped } from '../terminal.js'
import { bytesText, counted, countText } from './number.js'
import { sum, type VerifyFormat } from './verify-lines.js'

const MAX_PROBLEM_WIDTH = 100
const FIELD_LABELS = { expected: 'expected', found: 'found', lost: 'lost', advice: 'what to do' } as const
const LABEL_WIDTH = 12

/**
 * @param isOnly true for a single trial; of several, one without problems is a single line
 * @param columns the width of the terminal, if there is one
 */
export function verifyTable(isOnly: boolean, columns: number | undefined, colors: Colors): VerifyFormat {
  const width = Math.min(columns || MAX_PROBLEM_WIDTH, MAX_PROBLEM_WIDTH)

  const problemText = (problem: VerifyProblem): string => {
    const { code, offset, tensor, step } = problem
    const place = [
      ...(offset === null ? [] : [`offset ${countText(offset)}`]),
      ...(step === null ? [] : [`step ${step}`]),
      ...(tensor === null ? [] : [safe(tensor)]),
    ].join(', ')
    const lines = (['expected', 'found', 'lost', 'advice'] as const)
      .filter(key => problem[key] !== '')
      .map(key =>
        wrapped(`${FIELD_LABELS[key].padEnd(LABEL_WIDTH)}${safe(problem[key])}`, width, '    ', ' '.repeat(16)),
      )
    return [`  ${colors.red(code)}${place === '' ? '' : `  ${place}`}`, ...lines].map(line => `${line}\n`).join('')
  }

  const byFile = (problems: readonly VerifyProblem[]): string[] => {
    const files = new Map<string, VerifyProblem[]>()
    for (const problem of problems) entryOf(files, problem.file, () => []).push(problem)
    return [...files].map(
      ([file, ofFile]) => `${colors.bold(safe(file || 'the trial'))}\n${ofFile.map(problemText).join('')}`,
    )
  }

  /** The first note of each kind, and how many there are. */
  const notesText = ({ notes, noteCounts }: Verification): string[] => {
    const codes = Object.entries(noteCounts)
    if (codes.length === 0) return []
    const lines = codes.map(([code, count]) => {
      const first = notes.find(note => note.code === code)
      const text = first ? `${first.message}. ${first.advice}` : ''
      return `${wrapped(`${code}${count > 1 ? `, ${countText(count)} times, the first` : ''}: ${safe(text)}`, width, '  ', '    ')}\n`
    })
    return [`${colors.bold('Notes')}\n${lines.join('')}`]
  }

  const unlistedText = ({ problems, problemCounts }: Verification): string[] => {
    const lines = Object.entries(problemCounts).flatMap(([code, count]) => {
      const listed = problems.filter(problem => problem.code === code).length
      return count > listed ? [`  ${code}: ${countText(count - listed)} more\n`] : []
    })
    return lines.length > 0 ? [`${colors.bold('Not told one by one')}\n${lines.join('')}`] : []
  }

  return {
    head: '',
    line: () => '',
    end(trial: string, verification: Verification): string {
      const { ok, problems, problemCounts, noteCounts, stats } = verification
      const files = new Set(problems.map(({ file }) => file)).size
      const wrong = `${counted(sum(problemCounts), 'problem')} in ${counted(files, 'file')}`
      const notes = sum(noteCounts)
      // Files that were left out are not judged.
      const isPartial = (noteCounts.NotRead ?? 0) > 0
      const partial = stats.tensors === 0 ? 'nothing was read' : 'nothing is wrong in what was read'
      const fine = isPartial ? colors.yellow(partial) : colors.green('nothing is wrong')
      const result = ok ? fine : colors.red(wrong)
      const speed = stats.seconds > 0 ? stats.readBytes / stats.seconds / 1e9 : 0
      const isCheckpoint = stats.eventFiles + stats.indexFiles === 0 && stats.records > 0
      const checked = [
        ...(isCheckpoint
          ? []
          : [
              counted(stats.eventFiles, 'event file'),
              counted(stats.indexFiles, 'index file'),
              counted(stats.records, 'record'),
            ]),
        counted(stats.tensors, 'tensor'),
        bytesText(stats.readBytes),
      ].join(', ')
      const cost = `${stats.seconds.toFixed(2)} s, ${speed.toFixed(2)} GB/s, ${threadsText(stats.threads)}`
      const read =
        stats.values &&
        `; values read of ${countText(stats.values.read)} of ${counted(stats.values.of, 'tensor')} found`
      const listed =
        stats.digests &&
        `; ${countText(stats.digests.equal)} of ${counted(stats.digests.of, 'tensor')} as the digest list has them`
      const head = `${colors.bold(safe(trial))}: ${result}${notes > 0 ? `; ${counted(notes, 'note')}` : ''}${read ?? ''}${listed ?? ''}\n`
      if (ok && !isOnly) return head
      return [
        head,
        ...byFile(problems),
        ...unlistedText(verification),
        ...notesText(verification),
        `${[`Checked ${checked} in ${cost}`, ...(isCheckpoint && stats.digests ? [] : uncheckedText(stats, isCheckpoint))].map(text => `${wrapped(text, width, '', '  ')}\n`).join('')}`,
        ...(isOnly ? [] : ['']),
      ].join('\n')
    },
  }
}

const OF_CHECKPOINTS =
  'no file of these has checksums: that the values are those that were saved cannot be verified; --record writes a list for --digests'

/** The number of records with values that no checksum covers. */
function uncheckedText(
  { records, recordsWithoutChecksum: without }: Verification['stats'],
  isCheckpoint: boolean,
): string[] {
  if (!(without > 0)) return []
  if (isCheckpoint && without === records) return [OF_CHECKPOINTS]
  const some = `${countText(without)} of ${counted(records, 'record')} ${without === 1 ? 'carries' : 'carry'}`
  return [`${some} no payload checksum: ${without === 1 ? 'its' : 'their'} values cannot be verified`]
}

/** The number of threads in words. 0 stands for the main thread. */
function threadsText(threads: number): string {
  return threads === 0 ? 'on one thread' : `on ${counted(threads, 'thread')}`
}
