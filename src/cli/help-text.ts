/** Help as text in lines of 80 columns, and the topics that all commands share. */

import { EXIT_HELP } from './exit.js'
import { S3_OPTIONS } from './options/s3.js'
import { wrapped } from './terminal.js'

const WIDTH = 80
const HARD_SPACE = '\u00a0'

const STEPS_HELP = `
Global steps count on over all modes; mode steps are counted within each mode. trialscan ls shows both. --steps, and likewise --mode-steps, takes
  100         that step
  last        the last one
  100:200     from 100 up to, but not including, 200; 100: and :200 are open at one end
  0:100:10    0, 10, 20 and so on, below 100
  -5:         the last five: negative numbers count from the end of what the other options leave; -1 is the last
  0,10,20:30  several of these`

const S3_HELP = `
Wherever a trial is expected, s3://bucket/prefix is one on S3. Credentials are found as the AWS command line finds them: the environment, ~/.aws, the role of the machine.

Every command has these options:
${Object.values(S3_OPTIONS)
  .map(([flags, help]) => `  ${flags.padEnd(22)} ${help}`)
  .join('\n')}

docs/s3.md has more.`

/** The topics of `trialscan help NAME` beside the commands. */
export const TOPICS: Readonly<Record<string, string>> = {
  steps: STEPS_HELP,
  s3: S3_HELP,
  'exit-codes': EXIT_HELP,
}

/** The last lines of every command's help. */
export const TOPICS_HELP = '\nSee also: trialscan help s3, trialscan help exit-codes.'

/**
 * Wraps help in lines of 80 columns: paragraphs flow, list entries hang below their texts, and commands continue after
 * a backslash.
 */
export function helpText(text: string): string {
  const entries: { indent: string; hanging: number; words: string }[] = []
  let isOpen = false
  for (const line of text.split('\n')) {
    const [, indent, words] = /^( *)(.*)$/.exec(line) as unknown as [string, string, string]
    const last = entries.at(-1)
    const isMore =
      indent === ''
        ? last?.indent === '' && isOpen && !/^[\w.]+(?:, [\w.]+)*: /.test(words)
        : indent.length === last?.hanging
    if (last !== undefined && last.words !== '' && words !== '' && isMore) last.words += ` ${words}`
    else {
      // Columns of a list are two spaces or more apart.
      const columns = /^(\S+(?: \S+)* {2,})\S/.exec(words)
      const isCommand = words.startsWith('$ ')
      const hanging =
        indent.length + (columns && indent !== '' && !isCommand ? columns[1]!.length : indent === '' ? 0 : 4)
      entries.push({ indent, hanging, words })
    }
    // A short line is the end of its paragraph.
    isOpen = line.length > WIDTH
  }
  return entries.map(entryText).join('\n')
}

function entryText({ indent, hanging, words }: { indent: string; hanging: number; words: string }): string {
  const isCommand = words.startsWith('$ ')
  if (!isCommand) return wrapped(words, WIDTH, indent, ' '.repeat(hanging))
  // An option stays with its value, and a quoted text whole.
  const whole = words.replaceAll(/'[^']*'|"[^"]*"|--?[\w-]+ (?![-|])|\| \S+ /g, part =>
    part.replaceAll(' ', HARD_SPACE),
  )
  return wrapped(whole, WIDTH - 2, indent, ' '.repeat(hanging))
    .replaceAll('\n', ' \\\n')
    .replaceAll(HARD_SPACE, ' ')
}
