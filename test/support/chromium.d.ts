/** What the tests ask of playwright-core. */

import type { ChildProcess } from 'node:child_process'

export interface Page {
  goto(url: string): Promise<unknown>
  evaluate<A, R>(work: (argument: A) => R, argument: A): Promise<Awaited<R>>
  setInputFiles(selector: string, path: string): Promise<void>
  on(event: 'pageerror', report: (error: Error) => void): unknown
  on(event: 'console', report: (message: { text(): string }) => void): unknown
  close(): Promise<void>
}

export interface Browser {
  newPage(): Promise<Page>
  newBrowserCDPSession(): Promise<{ send(method: string): Promise<unknown> }>
  close(): Promise<void>
}

/** Whether there is a Chromium here. */
export const hasChromium: boolean
export function launch(): Promise<Browser>
export function openAlone(url: string, profile: string): ChildProcess
