/** One or two trials as a page: a single file that needs nothing else, no network either. */

import { createHash } from 'node:crypto'
import { quote, UsageError } from '../base/errors.js'
import { checkOptions, kinds, optionsOf } from '../base/options.js'
import { cutTrials } from '../compare/names/cut.js'
import { isTensorMap, namesInFirst, TENSOR_MAP, type TensorMap } from '../compare/names/tensor-map.js'
import { type ScanSelection, SELECTION_KINDS } from '../trial/scan-selection.js'
import { Trial } from '../trial/trial.js'
import { collect } from './collect.js'
import type { ReportData, TrialView } from './data.js'
import { differencesOf } from './differences.js'
import { pageHtml } from './page-html.js'

/** The options of a report: what is shown, and how it is read. Default: all tensors at all steps. */
export interface ReportOptions extends ScanSelection {
  /** Default: the names of the trials. */
  readonly title?: string
  /** The version of trialscan for the foot of the page. Default: none. */
  readonly version?: string
  /** For two trials: the map from the first one's tensors to the second's. Default: equal names. */
  readonly map?: TensorMap
  /** The tensor to show as points of a plane; its first axis is that of samples. Its name, or a part of it that no other name has. */
  readonly embed?: string
  /** The tensor that colours the points. Default: labels by the hooks' names. */
  readonly labels?: string
  /** The tensor whose images stand beside the points. Default: the model's input. */
  readonly images?: string
  /** The tensor of reconstructions. Default: the model's output, if it has the shape of the images. */
  readonly reconstructions?: string
  /** The perplexity of t-SNE: roughly the number of neighbours of a sample. Default: 30. */
  readonly perplexity?: number
  /** The iterations of t-SNE and UMAP. Default: as `embed`. */
  readonly iterations?: number
  readonly onProgress?: (progress: { readonly doneRows: number; readonly totalRows: number }) => void
}

const REPORT_OPTIONS = optionsOf<ReportOptions>({
  ...SELECTION_KINDS,
  title: kinds.text,
  version: kinds.text,
  map: kinds.that<TensorMap>(TENSOR_MAP, isTensorMap),
  embed: kinds.text,
  labels: kinds.text,
  images: kinds.text,
  reconstructions: kinds.text,
  perplexity: kinds.that<number>('a number from 1 on', value => typeof value === 'number' && value >= 1),
  iterations: kinds.wholeNumber(1, 100_000),
  onProgress: kinds.callback(),
})

/** A page, and what was learned on the way. */
export interface Report {
  /** The whole file. */
  readonly html: string
  /** The number of tensor values that the page is about. */
  readonly values: number
  /** A sentence for each read error. */
  readonly problems: readonly string[]
}

/**
 * A page about one trial or two: HTML that opens from disk. Rules judge the trials, and one scan reads all that is shown. The page lists
 * what can't be read.
 * @throws UsageError; what a scan throws
 */
export async function reportHtml(trials: Trial | readonly Trial[], options?: ReportOptions): Promise<Report> {
  const all = Array.isArray(trials) ? (trials as readonly Trial[]) : [trials as Trial]
  if (all.length < 1 || all.length > 2) throw new UsageError(`reportHtml: expected one trial or two, got ${all.length}`)
  const other = all.find(trial => !(trial instanceof Trial))
  if (other !== undefined) throw new UsageError(`reportHtml: expected trials, got ${quote(String(other))}`)
  const {
    title,
    version = '',
    map,
    embed,
    labels,
    images,
    reconstructions,
    perplexity,
    iterations,
    onProgress,
    ...selection
  } = checkOptions('reportHtml', REPORT_OPTIONS, options)
  const beside = Object.entries({ labels, images, reconstructions, perplexity, iterations }).find(
    ([, name]) => name !== undefined,
  )
  if (beside && embed === undefined)
    throw new UsageError(`reportHtml: expected embed beside ${beside[0]}`, { option: beside[0] })
  if (map !== undefined && all.length === 1)
    throw new UsageError('reportHtml: expected map beside two trials, got one', { option: 'map' })
  const embedding = embed === undefined ? null : { embed, labels, images, reconstructions, perplexity, iterations }
  const compared = all.length === 2 ? (await cutTrials(all[0]!, all[1]!, map ?? {}, false)).trials : all
  const [a, b] = compared
  const comparison = b === undefined ? null : await differencesOf(a!, b, map ?? {}, selection)
  const views: TrialView[] = []
  for (const trial of compared) {
    const differences = trial === a ? comparison : null
    const view = await collect(trial, { ...selection, embedding, differences, onProgress })
    const [first] = views
    views.push(
      map && first
        ? renamed(
            view,
            namesInFirst(
              map,
              first.tensors.map(({ name }) => name),
            ),
          )
        : view,
    )
  }
  const data = {
    version,
    title: title ?? all.map(({ name }) => name).join(' and '),
    trials: views,
    comparison: comparison && {
      verdict: comparison.verdict,
      differ: comparison.differ,
      partial: comparison.partial,
      compared: comparison.compared,
      suggested: comparison.suggested,
    },
  }
  return {
    html: await pageOf(data),
    values: views.reduce((sum, { values }) => sum + values, 0),
    problems: views.flatMap(({ problems }) => problems),
  }
}

/** A view with its tensors renamed to those of another trial. */
function renamed(view: TrialView, names: ReadonlyMap<string, string>): TrialView {
  return { ...view, tensors: view.tensors.map(tensor => ({ ...tensor, name: names.get(tensor.name) ?? tensor.name })) }
}

async function pageOf(data: ReportData): Promise<string> {
  const { SCRIPT, STYLE, LICENSES } = await import('./page-source.js')
  const policy = `default-src 'none'; script-src 'sha256-${digest(SCRIPT)}'; style-src 'unsafe-inline'; img-src data: blob:`
  const html = pageHtml({
    title: data.title,
    data,
    head: `<meta http-equiv="Content-Security-Policy" content="${policy}">\n<style>${STYLE}</style>`,
    script: `<script>${SCRIPT}</script>`,
  })
  return `${html}<!-- In this file are parts of these packages:\n\n${LICENSES}\n-->\n`
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
