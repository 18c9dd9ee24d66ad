/** The entry of the page: a report, trials of a server, or the list of them. */

import { served } from './live.js'
import { Page } from './page.js'
import { startPage } from './start-page.js'
import { fileSource, readData, ShownTrial } from './trials.js'

async function start(): Promise<void> {
  const data = readData()
  if ('trials' in data) {
    const trials = data.trials.map(view => new ShownTrial(view, fileSource(view)))
    const foot = 'The file has all it needs: nothing is loaded from elsewhere.'
    return new Page(trials, { ...data, extras: [], foot }).start()
  }
  return data.live.length === 0 ? startPage(data) : served(data)
}

void start()
