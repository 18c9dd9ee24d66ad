/** The data of a report's page: plain JSON. The page knows nothing else (src/view/page). */

import type { Mode, StatisticName } from '../base/types.js'
import type { Kind } from '../trial/kinds/kinds.js'

/** The statistics of a tensor at a step that a scan computes for a report. */
export const SCANNED_STATISTICS = [
  'abs_mean',
  'mean',
  'std',
  'min',
  'max',
  'l2',
  'abs_max',
  'nan_count',
  'inf_count',
  'zero_count',
  'sum',
  'variance',
  'prod',
  'l1',
  'abs_min',
  'abs_std',
  'abs_variance',
  'abs_sum',
  'abs_prod',
  'abs_l1',
  'abs_l2',
  'count',
] as const satisfies readonly StatisticName[]

/** The statistics of a server; `update_ratio`: the norm of a weight's change since the step before, relative to its own. */
export const SERVED_STATISTICS = [...SCANNED_STATISTICS, 'update_ratio'] as const

export type ServedStatistic = (typeof SERVED_STATISTICS)[number]

/**
 * The statistics of a report; of two runs `difference`: the norm of the difference, relative to that of the first; `changed`: the share of
 * elements that differ.
 */
export const SHOWN_STATISTICS = [...SERVED_STATISTICS, 'difference', 'changed'] as const

export type ShownStatistic = (typeof SHOWN_STATISTICS)[number]

export type Numbers = Float64Array<ArrayBuffer> | Float32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>

/** Numbers in JSON; in a browser that has read the trial itself, as they are. */
export type PackedNumbers = NumbersText | Numbers

/** Numbers as bytes, transposed: the first bytes of all, then the second ones, …; compressed by deflate (RFC 1951), in base64. */
interface NumbersText {
  readonly type: 'float64' | 'float32' | 'uint8'
  readonly length: number
  readonly base64: string
}

/** A statistic of every series, series by series. */
export interface PackedColumn {
  readonly name: ShownStatistic
  /** The stride of the steps from the first one on; 1: all of them. */
  readonly every: number
  /** True if the numbers are those of a scan, to the last digit. */
  readonly isExact: boolean
  /** NaN where there is no number; the NaN of a tensor differs in its lowest bit. */
  readonly numbers: PackedNumbers
}

/** The states of a series at a step. */
export const STATES = ['missing', 'present', 'failed'] as const

export interface TensorView {
  readonly name: string
  readonly kind: Kind
  /** Null: unknown. */
  readonly dtype: string | null
  /** The shape at the first step; null: unknown. */
  readonly shape: readonly number[] | null
}

/** A tensor of one worker. */
export interface SeriesView {
  /** Index into the tensors. */
  readonly tensor: number
  /** Index into the workers. */
  readonly worker: number
}

/** Series whose distributions a report holds, at most. */
export const MAX_RIDGES = 160

/** The distribution of a series' elements at some of its steps, each in equal bins of a range of its own. */
export interface RidgeView {
  readonly series: number
  /** Indices into the steps. */
  readonly steps: readonly number[]
  /** The number of elements at each of these steps. */
  readonly counts: readonly number[]
  /** The share of the elements that are 0 or below, to four digits. */
  readonly atMostZero: readonly number[]
  /** The numbers of elements that are −∞, NaN and +∞. */
  readonly lost: readonly (readonly [negative: number, nan: number, positive: number])[]
  /** The range of the bins. */
  readonly lows: readonly number[]
  readonly highs: readonly number[]
  readonly bins: number
  /** The largest share of the elements in one bin. */
  readonly most: readonly number[]
  /** The share of the elements in each bin, of the step's largest share: 0 to 255, one step after the other. */
  readonly shares: PackedNumbers
}

export interface FindingView {
  readonly rule: string
  /** Index into the steps. */
  readonly step: number
  /** Index into the tensors; null: the step as a whole. */
  readonly tensor: number | null
  readonly worker: string | null
  readonly message: string
  /** The index of the finding it follows from; null: it is a cause. */
  readonly cause: number | null
}

/** A rule that fired, and what to do about it. */
export interface AdviceView {
  readonly rule: string
  readonly meaning: string
  readonly advice: string
}

/** A limit of mean |gradient| below which a rule fires. */
export interface LimitView {
  readonly rule: string
  readonly below: number
  /** The share of the step's largest below which the rule fires as well; null: no such condition. */
  readonly share: number | null
}

/** All elements of a small tensor at a step. */
export interface ValueView {
  readonly series: number
  /** Index into the steps. */
  readonly step: number
  readonly shape: readonly number[]
  readonly numbers: PackedNumbers
}

/** The units of a layer: how many of the outputs of each are off. */
export interface UnitsView {
  readonly tensor: string
  /** Dead: outputs of a ReLU that are 0; saturated: those of tanh or sigmoid where the slope is less than a hundredth of the largest. */
  readonly isOff: 'dead' | 'saturated'
  readonly units: number
  /** Indices into the steps. */
  readonly steps: readonly number[]
  /** The outputs of each unit at each of these steps: samples, times positions in an image or a text. */
  readonly counts: readonly number[]
  /** The outputs that are off, of each unit, one step after the other. */
  readonly off: PackedNumbers
}

/** The trees that XGBoost grew at a step. */
export interface TreeView {
  /** Index into the steps. */
  readonly step: number
  readonly nodes: readonly TreeNode[]
}

export interface TreeNode {
  /** The feature that is split at; null for a leaf. */
  readonly feature: string | null
  /** Samples below go to `yes`; null for a leaf. */
  readonly split: number | null
  /** Indices of the nodes below; −1 for none. */
  readonly yes: number
  readonly no: number
  /** By how much the split lowers the loss; of a leaf, what it adds to the prediction. */
  readonly gain: number
  /** The samples that come here, about (the sum of their second derivatives). */
  readonly cover: number
}

/** The number of steps of a mode that are shown. */
export interface ThinnedView {
  readonly mode: Mode
  readonly kept: number
  readonly of: number
}

/** The predictions of labels. */
export interface ClassesView {
  /** Names of tensors. */
  readonly labels: string
  readonly predictions: string
  /** The classes there are, ascending; null: labels are no classes but numbers. */
  readonly classes: readonly number[] | null
  readonly steps: readonly ClassesStep[]
  /** The shown steps by mode; empty: all are shown. */
  readonly thinned: readonly ThinnedView[]
}

export interface ClassesStep {
  /** Index into the steps. */
  readonly step: number
  /** For classes: the number of each label predicted as each class, a row per label. */
  readonly counts: readonly number[]
  /** For classes: the label and the prediction of each of the first samples, as indices into the classes; −1 for none. */
  readonly samples: readonly (readonly [label: number, predicted: number])[]
  /** For two classes: the score of the second one, of each of these samples. */
  readonly scores: readonly number[]
  /** The images that the model was given, at the last step of a mode. */
  readonly images: ImagesView | null
  /** For numbers: √(Σ(prediction − label)² / n) over all n samples with finite predictions; null for none. */
  readonly error: number | null
  readonly decided: number
  /** For numbers: the predictions less the labels, and the labels, of the first samples. */
  readonly residuals: readonly number[]
  readonly labels: readonly number[]
  /** Samples counted nowhere else, since their predictions are NaN or, of a regression, infinite. */
  readonly undecided: number
}

export const EMBEDDING_METHODS = ['tsne', 'umap', 'pca'] as const
export type EmbeddingMethod = (typeof EMBEDDING_METHODS)[number]

/** Samples as points of a plane, by the elements that a tensor has for each. */
export interface EmbeddingView {
  readonly tensor: string
  readonly labels: string | null
  /** The inputs and reconstructions of the model, sample by sample. */
  readonly images: string | null
  readonly reconstructions: string | null
  readonly steps: readonly EmbeddingStep[]
  /** The shown steps by mode; empty: all are shown. */
  readonly thinned: readonly ThinnedView[]
}

export interface EmbeddingStep {
  /** Index into the steps. */
  readonly step: number
  /** The samples and steps that were placed together, this step among them. */
  readonly pool: { readonly samples: number; readonly steps: number }
  /** x and y of each sample. */
  readonly points: Readonly<Record<EmbeddingMethod, readonly (readonly [x: number, y: number])[]>>
  /** The label of each sample; empty if there are none. */
  readonly labels: readonly number[]
  /** The images of the first samples; null if there are none. */
  readonly images: ImagesView | null
  readonly reconstructions: ImagesView | null
  /** The mean squared error of each reconstruction; empty if there are none. */
  readonly errors: readonly number[]
}

/** Grey images of one size, from 0 to 255. */
export interface ImagesView {
  readonly count: number
  readonly height: number
  readonly width: number
  readonly pixels: PackedNumbers
}

/** The progress of the rules. */
export interface JudgedView {
  readonly state: 'off' | 'waiting' | 'judging' | 'done'
  /** The number of steps that they have judged. */
  readonly steps: number
}

export interface TrialView {
  readonly name: string
  readonly path: string
  /** True if the job has said that it ended. */
  readonly isEnded: boolean
  /** The facts about the last checkpoint, in a line; null: the trial is none of checkpoints. */
  readonly checkpoint: string | null
  readonly steps: readonly number[]
  /** The mode of each step as an index into `modes`, and its number within the mode. */
  readonly modes: readonly Mode[]
  readonly mode: readonly number[]
  readonly modeStep: readonly number[]
  readonly workers: readonly string[]
  readonly collections: readonly { readonly name: string; readonly size: number }[]
  readonly tensors: readonly TensorView[]
  readonly series: readonly SeriesView[]
  /** The state of each series and step, as an index into STATES. */
  readonly states: PackedNumbers
  readonly columns: readonly PackedColumn[]
  readonly ridges: readonly RidgeView[]
  readonly elements: readonly ValueView[]
  /** Null: there are no labels and predictions, or they were not read yet. */
  readonly classes: ClassesView | null
  /** True if there are labels and predictions. */
  readonly hasClasses: boolean
  readonly embedding: EmbeddingView | null
  /** The units of layers; null until somebody looks. */
  readonly units: readonly UnitsView[] | null
  /** XGBoost's trees; null until somebody looks. */
  readonly trees: readonly TreeView[] | null
  /** True if there are outputs of activations. */
  readonly hasUnits: boolean
  /** Findings, in the order of their steps. */
  readonly findings: readonly FindingView[]
  /** The number of all findings; a page lists only some of very many. */
  readonly findingCount: number
  /** The rules that judge. */
  readonly rules: readonly string[]
  /** Advice of the rules that fired. */
  readonly advice: readonly AdviceView[]
  /** A sentence for each unusual learning rate. */
  readonly besides: readonly string[]
  /** Rules that judged nothing although their tensors were saved, and what they lacked. */
  readonly notJudged: readonly { readonly rule: string; readonly missing: string }[]
  readonly limits: readonly LimitView[]
  /** Sentences about the numbers; null: not all of them were read. */
  readonly remarks: readonly string[] | null
  /** The progress of the rules. */
  readonly judged: JudgedView
  /** A sentence for each read error. */
  readonly problems: readonly string[]
  readonly values: number
  readonly readBytes: number
}

export interface ReportData {
  readonly version: string
  readonly title: string
  /** One trial, or two that are compared. */
  readonly trials: readonly TrialView[]
  /** Null if there is one trial. */
  readonly comparison?: ComparisonView | null
}

/** The differences of two trials. */
export interface ComparisonView {
  /** The first difference, in a sentence. */
  readonly verdict: string
  readonly differ: boolean
  /** True if something of the runs was not compared, or could not be read. */
  readonly partial: boolean
  /** Tensor values that were compared. */
  readonly compared: number
  /** Names of the first, each with the one in the second that may be the same. */
  readonly suggested: Readonly<Record<string, string>>
}

/** The differences of two trials of a server. */
export interface ServedComparison extends ComparisonView {
  /** The number of steps that the first trial had. */
  readonly steps: number
  /** Numbers of the first trial's series. */
  readonly columns: readonly PackedColumn[]
}
