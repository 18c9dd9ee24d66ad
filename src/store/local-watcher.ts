/** Tells of new files on the local disk, as far as the platform does. */

import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import type { Watcher } from './store.js'

/** A directory to watch, and whether its subdirectories, present and future, are watched too. */
export interface WatchedDirectory {
  readonly path: string
  readonly recursive: boolean
}

/**
 * Watches directories by the platform's file events. Where these can't be had (too many watches, a network file
 * system, the directory is not there yet) it stays silent: whoever waits looks again after a while in any case.
 * Not `watch`'s own recursive mode: on Linux that would put a watch on every file.
 */
export class DirectoryWatcher implements Watcher {
  readonly #directories: readonly WatchedDirectory[]
  readonly #watchers = new Map<string, FSWatcher>()
  #waiting: (() => void)[] = []
  #hasChanged = false

  constructor(directories: readonly WatchedDirectory[]) {
    this.#directories = directories
    this.#watchAll()
  }

  changed(): Promise<void> {
    if (this.#hasChanged) {
      this.#hasChanged = false
      // What has changed may be that there is a new directory.
      this.#watchAll()
      return Promise.resolve()
    }
    return new Promise(resolve => this.#waiting.push(resolve))
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  #watchAll(): void {
    for (const { path, recursive } of this.#directories) this.#watch(path, recursive)
  }

  #watch(path: string, recursive: boolean): void {
    try {
      if (!this.#watchers.has(path)) {
        const watcher = watch(path, { persistent: false }, () => this.#notify())
        watcher.on('error', () => this.#forget(path))
        this.#watchers.set(path, watcher)
      }
      if (!recursive) return
      for (const entry of readdirSync(path, { withFileTypes: true })) {
        if (entry.isDirectory()) this.#watch(join(path, entry.name), true)
      }
    } catch {
      this.#forget(path)
    }
  }

  #forget(path: string): void {
    this.#watchers.get(path)?.close()
    this.#watchers.delete(path)
  }

  #notify(): void {
    const waiting = this.#waiting
    this.#waiting = []
    if (waiting.length === 0) this.#hasChanged = true
    else this.#watchAll()
    for (const resolve of waiting) resolve()
  }
}
