/** The exit codes. */

export const EXIT = {
  ok: 0,
  findings: 1,
  usage: 2,
  store: 3,
  format: 4,
  query: 5,
  bug: 70,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const

/** The exit codes of several trials, in ascending order of weight. */
const BY_WEIGHT: readonly number[] = [EXIT.ok, EXIT.query, EXIT.findings, EXIT.format, EXIT.interrupted]

/** The exit code of two parts of some work: the weightier one. */
export function heavier(first: number, second: number): number {
  return BY_WEIGHT.indexOf(first) > BY_WEIGHT.indexOf(second) ? first : second
}

export const EXIT_HELP = `
Exit codes:
  0    all is well: no rule has fired (check, rule-invoker), all is finite (nan), nothing differs (diff)
  1    a rule has fired (not with --no-fail-on-finding), there are NaN or infinities (nan), the runs differ (diff)
  2    the command line is wrong: unknown option or rule, bad pattern, bad range
  3    bytes could not be had or written: no such path, permission denied, disk full; or no address space (ulimit -v)
  4    some bytes are not what they claim to be, or a rule has failed; everything else was printed, findings too
  5    the trial does not hold what was asked for (of check and rule-invoker, unless 1 or 4: a rule asked for by name had
       nothing to judge), or the directory is no trial
  70   a bug in trialscan, threads that do not start, or a module of your own that ends the process
  129, 130, 143  ended by a hangup, Ctrl-C or SIGTERM; what was printed is whole lines`
