/** One or two trials as a page: a single file that needs nothing else, no network either. */

import { createHash } from 'node:crypto'
import { quote, UsageError } from '../errors.js'
import { checkOptions, kinds, optionsOf } from '../options.js'
import { type ScanSelection, SELECTION_KINDS } from '../trial/scan-selection.js'
import { Trial } from '../trial/trial.js'
import { collect } from './collect.js'
import type { ReportData } from './data.js'

/** What of the trials is shown, and how it is read. Default: all tensors at all steps. */
export interface ReportOptions extends ScanSelection {
  /** Default: the names of the trials. */
  readonly title?: string
  /** Of trialscan, for the foot of the page. Default: none is told. */
  readonly version?: string
  readonly onProgress?: (progress: { readonly doneRows: number; readonly totalRows: number }) => void
}

const REPORT_OPTIONS = optionsOf<ReportOptions>({
  ...SELECTION_KINDS,
  title: kinds.text,
  version: kinds.text,
  onProgress: kinds.callback(),
})

/** A page, and what was learned on the way. */
export interface Report {
  /** The whole file. */
  readonly html: string
  /** How many values of tensors it is about. */
  readonly values: number
  /** What could not be read, in a sentence each. */
  readonly problems: readonly string[]
}

/**
 * A page about one trial, or about two that are compared: HTML that opens from disk. Rules judge the trials, and one scan reads
 * all that is shown. What can't be read is told in the page.
 * @throws UsageError; what a scan throws
 */
export async function reportHtml(trials: Trial | readonly Trial[], options?: ReportOptions): Promise<Report> {
  const all = Array.isArray(trials) ? (trials as readonly Trial[]) : [trials as Trial]
  if (all.length < 1 || all.length > 2) throw new UsageError(`reportHtml: expected one trial or two, got ${all.length}`)
  const other = all.find(trial => !(trial instanceof Trial))
  if (other !== undefined) throw new UsageError(`reportHtml: expected trials, got ${quote(String(other))}`)
  const { title, version = '', ...selection } = checkOptions('reportHtml', REPORT_OPTIONS, options)
  const views: ReportData['trials'][number][] = []
  for (const trial of all) views.push(await collect(trial, selection))
  const data = { version, title: title ?? all.map(({ name }) => name).join(' and '), trials: views }
  return {
    html: await pageOf(data),
    values: views.reduce((sum, { values }) => sum + values, 0),
    problems: views.flatMap(({ problems }) => problems),
  }
}

async function pageOf(data: ReportData): Promise<string> {
  const { SCRIPT, STYLE, LICENSES } = await import('./page-source.js')
  // Names come from the trial: no text of theirs can end the element, and none is run.
  const json = JSON.stringify(data).replaceAll('<', '\\u003c')
  const policy = `default-src 'none'; script-src 'sha256-${digest(SCRIPT)}'; style-src 'unsafe-inline'; img-src data: blob:`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(data.title)} – trialscan</title>
<style>${STYLE}</style>
</head>
<body>
<noscript>This report needs JavaScript, all of which is in this file.</noscript>
<main id="report" aria-busy="true"></main>
<script id="data" type="application/json">${json}</script>
<script>${SCRIPT}</script>
</body>
</html>
<!-- In this file are parts of these packages:

${LICENSES}
-->
`
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
