/** Debian's Chromium, driven by playwright-core. JavaScript, so that types are checked where playwright-core is not installed. */

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'

const EXECUTABLE = process.env.TRIALSCAN_CHROMIUM ?? '/usr/bin/chromium'

export const hasChromium = existsSync(EXECUTABLE)

// As root in a container there is no sandbox, and little shared memory.
const ARGUMENTS = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']

export async function launch() {
  const { chromium } = await import('playwright-core')
  const args = [...ARGUMENTS, '--js-flags=--expose-gc']
  return chromium.launch({ executablePath: EXECUTABLE, headless: true, args })
}

/**
 * Opens a page in a Chromium that nobody drives, in a process group of its own. What drives one keeps the bodies of answers
 * in the page's process, up to 200 MB of them, and copies each.
 */
export function openAlone(url, profile) {
  const args = [...ARGUMENTS, '--headless=new', '--no-first-run', `--user-data-dir=${profile}`, url]
  return spawn(EXECUTABLE, args, { stdio: 'ignore', detached: true })
}
