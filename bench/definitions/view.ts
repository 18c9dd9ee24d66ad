/** Pages: a report beside the scan that it is made of, a report in a browser, a summary, and a server's first page. */

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { hasChromium, launch } from '../../test/support/chromium.js'
import { sparseRun } from '../checkpoints.js'
import { type Case, type Contender, type Definition, expectSame, type Options, selfTimed } from '../definition.js'
import * as ours from '../engines/ours.js'
import { COMMAND } from '../package.js'
import { cpuMs, timed } from '../processes.js'
import { scratchPath } from '../scratch.js'
import { type Trial, trial } from '../trials.js'
import { processContender } from './cli.js'
import { copies } from './several.js'

const NODE = process.execPath

/** The trials of a page. */
interface Subject {
  readonly dir: string
  readonly title: string
  readonly tensorCount: number
}

export const view: Definition = {
  name: 'view',
  measures:
    'CPU time of whole processes, to their exit or to the first page; paint in Chromium; files in the page cache',
  *cases({ quick }: Options): Generator<Case> {
    const [large, many] = [trial('large', quick), trial('many', quick)]
    const run = sparseRun(20, '70B')
    const title = `20 checkpoints as 70B has them, ${run.tensors.toLocaleString('en-GB')} tensors`
    for (const [i, subject] of [large, many, { ...run, title, tensorCount: run.tensors }].entries()) {
      const page = scratchPath(`report-${i}.html`)
      yield reportCase(subject, page, subject === large ? beside(large) : [])
      if (hasChromium) yield pageCase(subject.title, page)
    }
    yield firstPageCase(many.title, [many.dir])
    const runs = quick ? 100 : 1000
    yield* runsCases(copies(runs), `${runs.toLocaleString('en-GB')} runs`, runs)
  },
}

function reportCase({ dir, title, tensorCount }: Subject, page: string, others: readonly Contender[]): Case {
  const command = [NODE, COMMAND, 'report', dir, '--out', page] as const
  return {
    size: `report of ${title}`,
    rounds: 2,
    contenders: [
      processContender(`${ours.NAME}, report`, timed(command), () => wrongPage(page, tensorCount), cpuMs),
      ...others,
    ],
  }
}

function beside({ dir }: Trial): Contender[] {
  const table = scratchPath('sketches.csv')
  return [
    processContender(
      `${ours.NAME}, scan with distributions`,
      timed([NODE, COMMAND, 'scan', dir, '--reductions', 'all,sketch', '--format', 'csv', '--out', table]),
      () => (readFileSync(table, 'latin1').split('\n').length > 1 ? undefined : 'expected rows, got none'),
      cpuMs,
    ),
    processContender(
      `${ours.NAME}, summary`,
      timed([NODE, COMMAND, 'summary', dir]),
      ({ stdout }) =>
        stdout.includes('looked through in')
          ? undefined
          : `expected a summary, got ${JSON.stringify(stdout.slice(0, 80))}`,
      cpuMs,
    ),
  ]
}

/** In a browser that runs: until something is painted, and until the page's first view is drawn. */
function pageCase(title: string, file: string): Case {
  const opened = async (): Promise<readonly number[]> => {
    const browser = await launch()
    const page = await browser.newPage()
    await page.goto(pathToFileURL(file).href)
    await page.waitForSelector('#report:not([aria-busy])')
    const times = await page.evaluate(`(async () => {
      const drawn = performance.now()
      const painted = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime
      while (painted() === undefined) await new Promise(requestAnimationFrame)
      return [painted(), drawn]
    })()`)
    await browser.close()
    return times as number[]
  }
  const at = (engine: string, i: number) =>
    selfTimed(engine, async () => ({ median: (await opened())[i]!, answer: true }), expectSame(true))
  return {
    size: `page of ${title} in Chromium`,
    rounds: 1,
    contenders: [at(`${ours.NAME}, first paint`, 0), at(`${ours.NAME}, first view drawn`, 1)],
  }
}

/** The page has each value of the trial. */
function wrongPage(file: string, values: number): string | undefined {
  const [, json] = /<script id="data" type="application\/json">(.*?)<\/script>/s.exec(readFileSync(file, 'utf8'))!
  const got = JSON.parse(json!).trials[0].values
  return got === values ? undefined : `expected a page of ${values} values, got ${got}`
}

function firstPageCase(title: string, dirs: readonly string[]): Case {
  return {
    size: `serve, first page of ${title}`,
    rounds: 2,
    contenders: [selfTimed(ours.NAME, () => served(dirs, ({ ms }) => ms), wrongFirstPage)],
  }
}

function* runsCases(dir: string, title: string, count: number): Generator<Case> {
  yield firstPageCase(title, [dir])
  if (process.platform !== 'linux') return
  const judged = async ({ url, megabytes }: Served) => {
    while ((await text(`${url}/api/trials`)).split('"judged":{"state":"done"').length <= count) await setTimeout(500)
    return megabytes()
  }
  yield {
    size: `peak memory, serve, ${title}`,
    unit: 'MB',
    rounds: 1,
    contenders: [
      selfTimed(`${ours.NAME}, first page`, () => served([dir], ({ megabytes }) => megabytes()), wrongFirstPage),
      selfTimed(`${ours.NAME}, all opened and judged`, () => served([dir], judged), wrongFirstPage),
    ],
  }
}

interface Served {
  readonly url: string
  /** CPU time until the last byte of the page; where that is not known, since the start. */
  readonly ms: number
  readonly megabytes: () => number
}

async function served(dirs: readonly string[], value: (served: Served) => number | Promise<number>) {
  const startedAt = performance.now()
  const server = spawn(NODE, [COMMAND, 'serve', ...dirs, '--port', '0'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    server.stderr.on('data', some => {
      said += some
      const match = /at (http:\S+)\/;/.exec(said)
      if (match) resolve(match[1]!)
    })
    server.on('exit', code => reject(new Error(`the server ended with ${code}: ${said}`)))
  })
  const answer = await text(url)
  const elapsed = performance.now() - startedAt
  const ms = process.platform === 'linux' ? cpuOf(server.pid!) : elapsed
  const megabytes = () => {
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
    return (Number(/^VmHWM:\s+(\d+) kB/m.exec(status)![1]) * 1024) / 1e6
  }
  const median = await value({ url, ms, megabytes })
  server.removeAllListeners('exit').kill('SIGINT')
  return { median, answer }
}

/** Milliseconds of a process that runs, as Linux counts them: in hundredths of a second. */
function cpuOf(pid: number): number {
  const [, words] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const [user, system] = words!.split(' ').slice(11, 13).map(Number)
  return 10 * (user! + system!)
}

function wrongFirstPage(page: string): string | undefined {
  return page.includes('id="report"') || page.includes('id="runs"')
    ? undefined
    : `expected a page, got ${page.slice(0, 200)}`
}

function text(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, response => {
      let body = ''
      response.on('data', some => (body += some))
      response.on('end', () => resolve(body))
    }).on('error', reject)
  })
}
