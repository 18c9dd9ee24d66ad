/**
 * The names that the frameworks' hooks give to the tensors that rules look for; docs/rules.md has the table and its sources. Each is a
 * Python pattern in a single text, so that it can be a parameter.
 */

import { entryOf } from '../../base/maps.js'
import { FRAMEWORKS, type Framework } from '../../base/types.js'
import type { TrialContents } from '../../scan/catalog/load/load.js'

const anyOf = (...patterns: readonly string[]): string => `(?i)${patterns.join('|')}`
const whole = (...patterns: readonly string[]): string => `^(${patterns.join('|')})$`

/** relu, without its leaky variants, which don't die. */
const RELU = '(?<![pr])(?<!leaky)(?<!leaky_)relu'
/** Without the hard and logarithmic variants, which are other functions. */
const SQUASHING = '(?<!hard)(?<!log)(tanh|sigmoid)'
/** Modules named after their role instead of their function. */
const ACTIVATION = '(^|[^a-z])(acts?|activations?|sig)([._]?\\d+)*'

/** Hooks that name the outputs and inputs of modules: `relu0_output_0`, `conv0_relu_input_0`. */
const MODULES: readonly Framework[] = ['pytorch', 'mxnet']
/**
 * The frameworks whose hooks name the inputs and outputs of layers: `relu/outputs`. TensorFlow's graph also has
 * `activation_1/Relu:0`.
 */
const LAYERS: readonly Framework[] = ['tensorflow', 'tfjs']
const GRAPH: readonly Framework[] = ['tensorflow']

/** The tensors that rules look for. */
interface Sought {
  readonly inWords: string
  /** The default pattern of smdebug's rule; null if it has none. */
  readonly byDefault: string | null
  /** The collection in which SageMaker's configurations save it; null if they have none. */
  readonly collection: string | null
  /** The name patterns, by framework. */
  readonly names: readonly (readonly [frameworks: readonly Framework[], pattern: string])[]
  readonly join: (...patterns: readonly string[]) => string
}

const sought = new Map<string, Sought>()

/** The pattern of all these names. */
function seek(
  inWords: string,
  byDefault: string | null,
  collection: string | null,
  names: Sought['names'],
  join: (...patterns: readonly string[]) => string = anyOf,
): string {
  const all = join(...names.map(([, pattern]) => pattern))
  const soughtName = { inWords, byDefault, collection, names, join }
  sought.set(all, soughtName)
  if (byDefault !== null) sought.set(byDefault, soughtName)
  return all
}

export const RELU_OUTPUTS = seek('outputs of ReLU layers, such as "relu0_output_0"', '.*relu_output', 'relu_output', [
  [MODULES, `${RELU}[^/]*_output`],
  [LAYERS, `${RELU}[^/]*/outputs(/|$)`],
  [GRAPH, '/relu6?(_\\d+)?(:\\d+)?$'],
])
export const RELU_INPUTS = seek('inputs of ReLU layers, such as "relu0_input_0"', '.*relu_input', 'relu_input', [
  [MODULES, `${RELU}[^/]*_input`],
  [LAYERS, `${RELU}[^/]*/inputs(/|$)`],
])
export const SQUASHING_INPUTS = seek(
  'inputs of tanh or sigmoid layers, such as "tanh0_input_0"',
  '.*tanh_input|.*sigmoid_input',
  null,
  [
    [MODULES, `${SQUASHING}[^/]*_input`],
    [LAYERS, `${SQUASHING}[^/]*/inputs(/|$)`],
  ],
)
export const SQUASHING_OUTPUTS = seek('outputs of tanh or sigmoid layers, such as "tanh0_output_0"', null, null, [
  [MODULES, `${SQUASHING}[^/]*_output`],
  [LAYERS, `${SQUASHING}[^/]*/outputs(/|$)`],
  [GRAPH, '/(tanh|sigmoid)(_\\d+)?(:\\d+)?$'],
  [[...MODULES, ...LAYERS], `${ACTIVATION}(_output|/outputs(/|$))`],
])
/** Inputs of the model. PyTorch's hook names a model after its class and layers after attributes. A loss is a class, too. */
export const MODEL_INPUTS = seek(
  'what the model is given, such as "CNN_input_0"',
  '.*hybridsequential0_input_0',
  'input_image',
  [
    [['pytorch'], '(?!.*Loss)[A-Z][^/.]*_input_0'],
    [['mxnet'], '(hybrid)?sequential\\d+_input_0'],
    [LAYERS, 'inputs(_\\d+)?'],
  ],
  whole,
)
export const TOKENS = seek(
  'inputs of embeddings, such as "embedding0_input_0"',
  '.*embedding0_input_0',
  'input_sequence',
  [
    [MODULES, 'embed[^/]*_input_0$'],
    [LAYERS, 'embed[^/]*/inputs(/|$)'],
  ],
)
/** Labels and predictions of a classifier, also as the inputs of its loss. */
export const LABELS = seek('labels, such as "labels" or "CrossEntropyLoss_input_1"', '.*labels', 'labels', [
  [FRAMEWORKS, '(^|/)labels?(_\\d+)?(:\\d+)?$'],
  [MODULES, '(crossentropy|nll)loss_?\\d*_input_1$'],
])
export const PREDICTIONS = seek(
  'predictions, such as "predictions" or "CrossEntropyLoss_input_0"',
  '.*predictions',
  'predictions',
  [
    [FRAMEWORKS, '(^|/)predictions?(_\\d+)?(:\\d+)?$'],
    [MODULES, '(crossentropy|nll)loss_?\\d*_input_0$'],
  ],
)
export const LOSSES = '(?i)^(?!.*(gradient|weight|bias|_input_)).*loss'

/** The names that the hooks of PyTorch, MXNet and Keras give to the gradient of a weight. */
export function gradientNames(weight: string): readonly string[] {
  return [`gradient/${weight}`, `gradients/${weight.replace(/^.*\/weights\//, '').replace(/:\d+$/, '')}Grad`]
}

/** True if a name can be one of `gradientNames`. */
export function isGradientName(name: string): boolean {
  return name.startsWith('gradient/') || name.startsWith('gradients/')
}

/** XGBoost's trees have NaN for whatever a leaf lacks. */
export const NOT_OF_TREES = '^(?!trees/)'

/** The meaning of the patterns, for messages. */
export const IN_WORDS: ReadonlyMap<string, string> = new Map([
  ...[...sought].flatMap(([pattern, { inWords, byDefault }]) =>
    pattern === byDefault ? [] : [[pattern, inWords] as const],
  ),
  [LOSSES, 'losses, such as "CrossEntropyLoss_output_0"'],
])

/** The collection in which SageMaker's configurations save the tensors of a pattern; null if there is none. */
export function collectionFor(pattern: string): string | null {
  return sought.get(pattern)?.collection ?? null
}

/** True for a pattern that covers all frameworks, in a place where smdebug's rule has a pattern of its own. */
export function isWiderDefault(pattern: string): boolean {
  const { byDefault = null } = sought.get(pattern) ?? {}
  return byDefault !== null && byDefault !== pattern
}

/** The pattern that one framework's names need, for a pattern that covers all; any other pattern unchanged. */
export function patternFor(framework: Framework, pattern: string): string {
  const { names, join } = sought.get(pattern) ?? { names: [], join: anyOf }
  const ofFramework = names.flatMap(([frameworks, name]) => (frameworks.includes(framework) ? [name] : []))
  return ofFramework.length > 0 ? join(...ofFramework) : pattern
}

/** The framework that a training used, as far as its collections and tensor names show. TensorFlow.js names layers as TensorFlow does. */
export function frameworkOf(contents: TrialContents): Framework | null {
  return entryOf(frameworks, contents, () => tellFramework(contents))
}

const frameworks = new WeakMap<TrialContents, Framework | null>()

function tellFramework({ catalog: { names }, collections: { collections } }: TrialContents): Framework | null {
  if (collections.has('hyperparameters') || collections.has('feature_importance')) return 'xgboost'
  const losses = collections.get('losses')?.includeRegex ?? []
  if (losses.includes('[Ll]oss_(?!input).*output')) return 'pytorch'
  if (losses.includes('.*loss._(?!input).*output')) return 'mxnet'
  for (const name of names) for (const [framework, pattern] of TELLING) if (pattern.test(name)) return framework
  return null
}

/** Names that only one framework's hook writes. */
const TELLING: readonly (readonly [Framework, RegExp])[] = [
  ['xgboost', /^(trees|hyperparameters|feature_importance)\/|^(train|validation|eval|test)-/],
  ['mxnet', /sequential\d+_|^(gradient\/)?[a-z]+\d+_(weight|bias|gamma|beta)$/],
  ['tensorflow', /\/(inputs|outputs|kernel|weights)(\/|:|$)|:\d+$/],
  ['pytorch', /\.(weight|bias)$|_(input|output)_\d+$/],
]
