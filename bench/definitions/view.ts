/** What people look at: a report beside the scan that it is made of, a summary, and a server's first page. */

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { type Case, type Definition, type Options, selfTimed } from '../definition.js'
import * as ours from '../engines/ours.js'
import { COMMAND } from '../package.js'
import { scratchPath } from '../scratch.js'
import { type Trial, trial } from '../trials.js'
import { processContender } from './cli.js'

const NODE = process.execPath

export const view: Definition = {
  name: 'view',
  measures: 'whole processes from start to exit, or to the first page; files in the page cache',
  *cases({ quick }: Options): Generator<Case> {
    const large = trial('large', quick)
    yield reportCase(large)
    yield firstPageCase(trial('many', quick))
  },
}

function reportCase({ dir, title, byteLength, tensorCount }: Trial): Case {
  const [page, table] = [scratchPath('report.html'), scratchPath('sketches.csv')]
  return {
    size: `report of ${title}`,
    byteLength,
    rounds: 5,
    contenders: [
      processContender(`${ours.NAME}, report`, [NODE, COMMAND, 'report', dir, '--out', page], () =>
        wrongPage(page, tensorCount),
      ),
      processContender(
        `${ours.NAME}, scan with distributions`,
        [NODE, COMMAND, 'scan', dir, '--reductions', 'all,sketch', '--format', 'csv', '--out', table],
        () => (readFileSync(table, 'latin1').split('\n').length > 1 ? undefined : 'expected rows, got none'),
      ),
      processContender(`${ours.NAME}, summary`, [NODE, COMMAND, 'summary', dir], ({ stdout }) =>
        stdout.includes('looked through in')
          ? undefined
          : `expected a summary, got ${JSON.stringify(stdout.slice(0, 80))}`,
      ),
    ],
  }
}

/** The page has each value of the trial. */
function wrongPage(file: string, values: number): string | undefined {
  const [, json] = /<script id="data" type="application\/json">(.*?)<\/script>/s.exec(readFileSync(file, 'utf8'))!
  const got = JSON.parse(json!).trials[0].values
  return got === values ? undefined : `expected a page of ${values} values, got ${got}`
}

function firstPageCase({ dir, title }: Trial): Case {
  return {
    size: `serve, first page of ${title}`,
    rounds: 5,
    contenders: [
      selfTimed(
        ours.NAME,
        async () => {
          const startedAt = performance.now()
          const server = spawn(NODE, [COMMAND, 'serve', dir, '--port', '0'], { stdio: ['ignore', 'ignore', 'pipe'] })
          const url = await new Promise<string>((resolve, reject) => {
            let said = ''
            server.stderr.on('data', some => {
              said += some
              const found = /at (http:\S+)\/;/.exec(said)
              if (found) resolve(found[1]!)
            })
            server.on('exit', code => reject(new Error(`the server ended with ${code}: ${said}`)))
          })
          const answer = await text(url)
          const median = performance.now() - startedAt
          server.removeAllListeners('exit').kill('SIGINT')
          return { median, answer }
        },
        page => (page.includes('id="report"') ? undefined : 'expected a page'),
      ),
    ],
  }
}

function text(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, response => {
      let body = ''
      response.on('data', some => (body += some))
      response.on('end', () => resolve(body))
    }).on('error', reject)
  })
}
