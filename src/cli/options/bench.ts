/** The command that measures: bench. */

import { type CommandDefinition, TRIAL } from './options.js'

export const BENCH_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'bench',
    description: 'How fast this machine is: the kernels beside plain JS, numpy and tfjs; or a scan of a trial.',
    arguments: { '[TRIAL]': `${TRIAL}; without it, the kernels are measured` },
    options: `
      --quick               of the kernels: smaller arrays and fewer rounds, under 20 s
      --threads
      --json                one object, for programs`,
    help: `Examples:
  $ trialscan bench --quick
  $ trialscan bench ./my-training
  $ trialscan bench --json | jq '.kernels[] | select(.kernel == "CRC-32C").contenders'

Without a trial: reductions, allclose and CRC-32C on one thread, in turns, each the median of several rounds. Every answer is
checked first; a wrong one ends the command with exit code 70. numpy is found through python3, tfjs
(@tensorflow/tfjs-core and @tensorflow/tfjs-backend-wasm) in the node_modules of the current directory.

With a trial: it is scanned three times, all reductions as text, and the table says where the time goes: read (from the page cache),
decode, reduce and text, added up over the threads. Beside it stands how fast one thread reads the event files and does nothing
else: from the page cache, and from the disk (O_DIRECT, Linux only).

json: machine { cpu, cores, platform, node, trialscan, numpy, tfjs } and kernels [{ kernel, dtype, bytes,
contenders: [{ engine, ms, gbPerSecond, ratio }] }]; of a trial: machine, trial, tensors, records, bytes, threads, failedRows,
openSeconds, scanSeconds, spentSeconds, waitSeconds, pageCacheRate and diskRate (bytes a second), boundBy, uncachedBoundBy.`,
    load: async () => (await import('../commands/bench.js')).bench,
  },
]
