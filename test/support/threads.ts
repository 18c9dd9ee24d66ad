/** The threads that this process starts, to be killed; and packages whose threads do other things than ours. */

import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import { ROOT } from './golden.js'

/** Watches all threads of the process from now on. */
export class Threads {
  readonly living = new Set<Worker>()
  started = 0
  /** Is told of each new thread. */
  onStart: (worker: Worker) => void = () => {}
  readonly #watch = (worker: Worker): void => {
    this.started++
    this.living.add(worker)
    worker.once('exit', () => this.living.delete(worker))
    this.onStart(worker)
  }

  constructor() {
    process.on('worker', this.#watch)
  }

  /** Kills one of the living; none if there is none. */
  kill(number: number): Promise<number> | undefined {
    const threads = [...this.living]
    return threads[number % threads.length]?.terminate()
  }

  stop(): void {
    process.off('worker', this.#watch)
  }
}

/** A copy of the built package in a new directory, with another thread file. @returns the URL of its index.js */
export function packageWithThread(copy: string, change: (source: string) => string): string {
  mkdirSync(copy)
  const filter = (path: string): boolean => !path.endsWith('.d.ts') && !path.endsWith('bundle')
  for (const part of ['dist', 'build', 'package.json']) {
    cpSync(join(ROOT, part), join(copy, part), { recursive: true, filter })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  const thread = join(copy, 'dist/scan/runner/thread.js')
  writeFileSync(thread, change(readFileSync(thread, 'utf8')))
  return pathToFileURL(join(copy, 'dist/index.js')).href
}

/** Runs a module's text in a process of its own. @returns what it printed, from JSON */
export async function runModule<T>(script: string, flags: readonly string[] = []): Promise<T> {
  const args = [...flags, '--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 150_000, maxBuffer: 1 << 26 })
  return JSON.parse(stdout) as T
}
