/** What a user's page does: opens a trial, and scans it on a thread. */

import { createTrial } from 'trialscan/web/inline'

async function main() {
  const trial = await createTrial(new URLSearchParams(location.search).get('trial'))
  const rows = []
  for await (const { tensor, step, reductions } of trial.scan({ threads: 1, reductions: ['mean'] })) {
    rows.push(`${tensor} ${step} ${reductions.mean}`)
  }
  document.title = JSON.stringify(rows)
}

main()
