/** The watcher of new files on the local disk, where the platform reports them. */

import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import type { Watcher } from '../store.js'
import { isDirectory } from './file.js'

/** A directory to watch, with or without its present and future subdirectories. */
export interface WatchedDirectory {
  readonly path: string
  readonly recursive: boolean
}

/** The number of watched subdirectories: those whose names sort last, where new steps are written. */
const MAX_BELOW = 16

/**
 * Watches directories through the platform's file events. Where there are none (too many watches, a network file
 * system, a missing directory) it stays silent: callers look again after a while anyway. It does not use the recursive
 * mode of `watch`, which on Linux would put a watch on every file.
 */
export class DirectoryWatcher implements Watcher {
  readonly #directories: readonly WatchedDirectory[]
  readonly #watchers = new Map<string, FSWatcher>()
  /** The watched subdirectories, in the order in which they were found. */
  readonly #below = new Set<string>()
  #waiting: (() => void)[] = []
  #hasChanged = false

  constructor(directories: readonly WatchedDirectory[]) {
    this.#directories = directories
    this.#watchAll()
  }

  changed(): Promise<void> {
    if (this.#hasChanged) {
      this.#hasChanged = false
      return Promise.resolve()
    }
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
    this.#waiting = []
  }

  /** Watches the directories that are not watched yet: they may have been missing or removed. */
  #watchAll(): void {
    for (const { path, recursive } of this.#directories) {
      if (!this.#watchers.has(path) && this.#watch(path, recursive) && recursive) this.#watchBelow(path)
    }
  }

  #watchBelow(path: string): void {
    try {
      const entries = readdirSync(path, { withFileTypes: true })
      const names = entries.filter(entry => entry.isDirectory()).map(({ name }) => name)
      for (const name of names.sort().slice(-MAX_BELOW)) this.#add(join(path, name))
    } catch {
      this.#forget(path)
    }
  }

  #add(path: string): void {
    if (this.#watchers.has(path) || !this.#watch(path, true)) return
    this.#below.add(path)
    if (this.#below.size > MAX_BELOW) this.#forget(this.#below.values().next().value!)
  }

  #watch(path: string, recursive: boolean): boolean {
    try {
      const watcher = watch(path, { persistent: false }, (_, name) => {
        if (recursive && name !== null && isDirectory(join(path, name))) this.#add(join(path, name))
        this.#notify()
      })
      watcher.on('error', () => this.#forget(path))
      this.#watchers.set(path, watcher)
      return true
    } catch {
      return false
    }
  }

  #forget(path: string): void {
    this.#watchers.get(path)?.close()
    this.#watchers.delete(path)
    this.#below.delete(path)
  }

  #notify(): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#hasChanged = waiting.length === 0
    this.#watchAll()
    for (const resolve of waiting) resolve()
  }
}
