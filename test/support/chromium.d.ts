/** What the tests ask of playwright-core. */

import type { ChildProcess } from 'node:child_process'

/** Elements that match a selector. */
export interface Locator {
  count(): Promise<number>
  focus(): Promise<void>
  getAttribute(name: string): Promise<string | null>
  allTextContents(): Promise<string[]>
  all(): Promise<Locator[]>
  first(): Locator
  locator(selector: string): Locator
  click(): Promise<void>
  isVisible(): Promise<boolean>
  scrollIntoViewIfNeeded(): Promise<void>
}

export interface Page {
  readonly keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> }
  readonly mouse: { move(x: number, y: number): Promise<void> }
  readonly touchscreen: { tap(x: number, y: number): Promise<void> }
  goto(url: string): Promise<unknown>
  goBack(): Promise<unknown>
  reload(): Promise<unknown>
  title(): Promise<string>
  locator(selector: string): Locator
  waitForSelector(selector: string, options?: { timeout?: number; state?: 'attached' }): Promise<unknown>
  waitForEvent(event: 'download'): Promise<{ suggestedFilename(): string; path(): Promise<string | null> }>
  getAttribute(selector: string, name: string): Promise<string | null>
  fill(selector: string, text: string): Promise<void>
  focus(selector: string): Promise<void>
  inputValue(selector: string): Promise<string>
  check(selector: string): Promise<void>
  textContent(selector: string): Promise<string | null>
  click(selector: string): Promise<void>
  selectOption(selector: string, value: string): Promise<unknown>
  screenshot(options: { path: string; fullPage?: boolean }): Promise<unknown>
  setViewportSize(size: { width: number; height: number }): Promise<void>
  emulateMedia(options: { colorScheme?: 'light' | 'dark'; forcedColors?: 'active' | 'none' }): Promise<void>
  evaluate(script: string): Promise<unknown>
  evaluate<A, R>(work: (argument: A) => R, argument: A): Promise<Awaited<R>>
  setInputFiles(selector: string, path: string): Promise<void>
  context(): BrowserContext
  on(event: 'pageerror', report: (error: Error) => void): unknown
  on(event: 'request', report: (request: { url(): string }) => void): unknown
  on(event: 'console', report: (message: { text(): string }) => void): unknown
  close(): Promise<void>
}

/** Tabs that share what a browser has for all. */
export interface BrowserContext {
  newPage(): Promise<Page>
  addInitScript(script: string): Promise<unknown>
  setOffline(isOffline: boolean): Promise<void>
  newCDPSession(page: Page): Promise<{ send(method: string): Promise<unknown> }>
  on(event: 'request', report: (request: { url(): string; method(): string }) => void): unknown
  close(): Promise<void>
}

export interface Browser {
  newPage(): Promise<Page>
  newContext(options?: { hasTouch: boolean; viewport: { width: number; height: number } }): Promise<BrowserContext>
  newBrowserCDPSession(): Promise<{ send(method: string): Promise<unknown> }>
  close(): Promise<void>
}

/** Whether there is a Chromium here. */
export const hasChromium: boolean
export function launch(): Promise<Browser>
export function openAlone(url: string, profile: string): ChildProcess
