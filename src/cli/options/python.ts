/** The command that prints trialscan.py. */

import type { Command } from 'commander'
import { EXIT_HELP } from '../exit.js'
import type { RunCommand } from './options.js'

/** Adds it to the command line. */
export function addPythonCommand(program: Command, run: RunCommand): void {
  program
    .command('python')
    .description('Prints trialscan.py, which saves trainings in PyTorch and reads trials from Python.')
    .addHelpText(
      'after',
      `
Examples:
  $ trialscan python > trialscan.py

It is one file, to lie beside your program:
  from trialscan import capture
  with capture(model, "run", every=100) as c:
      for x, y in data:
          …
          c.step(loss=loss)

  import trialscan
  trialscan.check("run")        findings of rules, as a DataFrame of pandas

docs/pytorch.md and docs/python.md have the rest.
${EXIT_HELP}`,
    )
    .action(() => run('python', async () => (await import('../commands/python.js')).python()))
}
