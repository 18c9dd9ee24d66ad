/** The core's file: fetched and compiled once for a page. */

import { EngineError } from '../base/errors.js'
import { lazily } from '../base/lazily.js'
import { adoptModule } from '../core/border/module.js'
import { theFiles } from './files.js'
import { preparePackages } from './packages.js'

const load = lazily(() => Promise.all([compile(), preparePackages()]))

/**
 * Fetches and compiles the core, unless that is done. `createTrial` calls it; before `momentsOf` or `allclose` without
 * a trial, the caller does.
 * @throws EngineError `NoCore`
 */
export async function loadCore(): Promise<void> {
  await load()
}

async function compile(): Promise<void> {
  const { url, response } = theFiles().fetchCore()
  try {
    const answer = await response
    if (!answer.ok) throw new Error(`HTTP status ${answer.status}`)
    // Compiled from its bytes: not every server says that it is application/wasm.
    adoptModule(await WebAssembly.compile(await answer.arrayBuffer()))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const hint = 'a bundler has to copy it, or import trialscan/web/inline'
    throw new EngineError(
      `expected the WebAssembly core at ${url}, but got ${reason}: ${hint}`,
      { url },
      cause,
      'NoCore',
    )
  }
}
