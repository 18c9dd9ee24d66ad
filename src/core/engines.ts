/** The engines of this thread. Each serves one job at a time, even while the job waits, since its memory belongs to the job. */

import { EngineError, TrialscanError } from '../base/errors.js'
import { Engine } from './engine.js'

/** Engines not in use; the most recently used one is last. */
const idle: Engine[] = []

/** Runs work on an engine. After an unexpected error, that engine is discarded. */
export async function withEngine<T>(work: (engine: Engine) => T | Promise<T>): Promise<T> {
  const engine = idle.pop() ?? new Engine()
  try {
    const result = await work(engine)
    idle.push(engine)
    return result
  } catch (error) {
    if (isExpected(error)) idle.push(engine)
    throw error
  }
}

/** Runs synchronous work with an engine. */
export function withEngineSync<T>(work: (engine: Engine) => T): T {
  const engine = idle.pop() ?? new Engine()
  try {
    const result = work(engine)
    idle.push(engine)
    return result
  } catch (error) {
    if (isExpected(error)) idle.push(engine)
    throw error
  }
}

function isExpected(error: unknown): boolean {
  return error instanceof TrialscanError && !(error instanceof EngineError)
}
