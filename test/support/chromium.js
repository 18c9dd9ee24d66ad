/** Debian's Chromium, driven by playwright-core. JavaScript, so that types are checked where playwright-core is not installed. */

import { existsSync } from 'node:fs'

const EXECUTABLE = process.env.TRIALSCAN_CHROMIUM ?? '/usr/bin/chromium'

export const hasChromium = existsSync(EXECUTABLE)

export async function launch() {
  const { chromium } = await import('playwright-core')
  // As root in a container there is no sandbox, and little shared memory.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--js-flags=--expose-gc']
  return chromium.launch({ executablePath: EXECUTABLE, headless: true, args })
}
