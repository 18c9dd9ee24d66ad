/**
 * How the hooks of the frameworks name what rules look for: docs/rules.md has the table and its sources. These are Python
 * patterns, each a single text so that it can be a parameter.
 */

const anyOf = (...patterns: readonly string[]): string => `(?i)${patterns.join('|')}`

/** relu, but not its leaky variants, which don't die. */
const RELU = '(?<![pr])(?<!leaky)(?<!leaky_)relu'
/** Hard and logarithmic variants are other functions. */
const SQUASHING = '(?<!hard)(?<!log)(tanh|sigmoid)'
/** Modules named after their role instead of their function. */
const ACTIVATION = '(^|[^a-z])(acts?|activations?|sig)([._]?\\d+)*'

/** `relu0_output_0`, `conv0_relu_output_0`, `relu/outputs`, `activation_1/Relu:0`. */
export const RELU_OUTPUTS = anyOf(`${RELU}[^/]*_output`, `${RELU}[^/]*/outputs(/|$)`, `/relu6?(_\\d+)?(:\\d+)?$`)
export const RELU_INPUTS = anyOf(`${RELU}[^/]*_input`, `${RELU}[^/]*/inputs(/|$)`)
export const SQUASHING_INPUTS = anyOf(`${SQUASHING}[^/]*_input`, `${SQUASHING}[^/]*/inputs(/|$)`)
export const SQUASHING_OUTPUTS = anyOf(
  `${SQUASHING}[^/]*_output`,
  `${SQUASHING}[^/]*/outputs(/|$)`,
  '/(tanh|sigmoid)(_\\d+)?(:\\d+)?$',
  `${ACTIVATION}(_output|/outputs(/|$))`,
)
/** Inputs of the model. PyTorch's hook names a model after its class and layers after attributes. A loss is a class, too. */
export const MODEL_INPUTS = '^((?!.*Loss)[A-Z][^/.]*_input_0|(hybrid)?sequential\\d+_input_0|inputs(_\\d+)?)$'
export const TOKENS = anyOf('embed[^/]*_input_0$', 'embed[^/]*/inputs(/|$)')
/** Labels and predictions of a classifier, also as the inputs of its loss. */
export const LABELS = anyOf('(^|/)labels?(_\\d+)?(:\\d+)?$', '(crossentropy|nll)loss_?\\d*_input_1$')
export const PREDICTIONS = anyOf('(^|/)predictions?(_\\d+)?(:\\d+)?$', '(crossentropy|nll)loss_?\\d*_input_0$')
export const LOSSES = '(?i)^(?!.*(gradient|weight|bias|_input_)).*loss'

/** The names that the hooks of PyTorch, MXNet and Keras give to the gradient of a weight. */
export function gradientNames(weight: string): readonly string[] {
  return [`gradient/${weight}`, `gradients/${weight.replace(/^.*\/weights\//, '').replace(/:\d+$/, '')}Grad`]
}

/** Whether a name can be one of `gradientNames`. */
export function isGradientName(name: string): boolean {
  return name.startsWith('gradient/') || name.startsWith('gradients/')
}

/** XGBoost's trees have NaN for whatever a leaf lacks. */
export const NOT_OF_TREES = '^(?!trees/)'

/** What the patterns look for, in words. */
export const IN_WORDS: ReadonlyMap<string, string> = new Map([
  [RELU_OUTPUTS, 'outputs of ReLU layers, such as "relu0_output_0"'],
  [RELU_INPUTS, 'inputs of ReLU layers, such as "relu0_input_0"'],
  [SQUASHING_INPUTS, 'inputs of tanh or sigmoid layers, such as "tanh0_input_0"'],
  [SQUASHING_OUTPUTS, 'outputs of tanh or sigmoid layers, such as "tanh0_output_0"'],
  [MODEL_INPUTS, 'what the model is given, such as "CNN_input_0"'],
  [TOKENS, 'inputs of embeddings, such as "embedding0_input_0"'],
  [LABELS, 'labels, such as "labels" or "CrossEntropyLoss_input_1"'],
  [PREDICTIONS, 'predictions, such as "predictions" or "CrossEntropyLoss_input_0"'],
  [LOSSES, 'losses, such as "CrossEntropyLoss_output_0"'],
])
