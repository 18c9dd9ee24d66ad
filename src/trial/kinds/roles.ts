/** The role of each tensor in the model, from names and collections: layers, their inputs and outputs, losses, weights and gradients. */

import type { Kind } from './kinds.js'

/** The role of a tensor in the computation. */
export interface Role {
  readonly kind: 'input' | 'output' | 'loss' | 'gradient' | 'parameter' | 'other'
  /** For inputs and outputs: the layer. For a gradient: its parameter. Otherwise: the tensor itself. */
  readonly of: string
}

const GRADIENT = /^grad(ient)?s?[/._](?<of>.*)$/
const PLACE_OF_LAYER = /^(.*?)[_/.](input|output)s?(?:[_:/.]\d+)*$/
/** The endings that MXNet's hook gives the names of parameters, where PyTorch and Keras have a point or a slash. */
const PARAMETER_END = /_(weight|bias|gamma|beta|kernel|running_mean|running_var|moving_mean|moving_variance)(:\d+)?$/

export function roleOf(name: string, kind: Kind): Role {
  const gradient = GRADIENT.exec(name)?.groups?.of ?? (kind === 'gradients' ? name : null)
  if (gradient !== null) return { kind: 'gradient', of: gradient.replace(/([./_]grad|Grad)$/, '') }
  const layer = PLACE_OF_LAYER.exec(name)
  if (layer) return { kind: layer[2] === 'input' ? 'input' : 'output', of: layer[1]! }
  switch (kind) {
    case 'losses':
      return { kind: 'loss', of: name }
    case 'outputs':
      return { kind: 'output', of: name }
    case 'inputs':
      return { kind: 'input', of: name }
    case 'weights':
    case 'biases':
      return { kind: 'parameter', of: name }
    default:
      return { kind: 'other', of: name }
  }
}

/**
 * The names of layers that a parameter may belong to: of `Net_block.fc1.weight` they are `Net_block.fc1`, `block.fc1` and `fc1`; of
 * `fc1/kernel:0`, `fc1`; of MXNet's `net0_conv0_weight`, `net0_conv0` and `conv0`.
 */
export function layersOf(parameter: string): readonly string[] {
  const isSplit = /[./]/.test(parameter)
  const owner = parameter.replace(isSplit ? /[./][^./]*$/ : PARAMETER_END, '')
  if (owner === parameter) return []
  const starts = [...owner.matchAll(/[_/.]/g)].map(({ index }) => index + 1)
  return [0, ...starts].map(start => owner.slice(start)).filter(layer => layer !== '')
}

/**
 * True if a gradient is the gradient of a parameter. Keras leaves out the layer and the output's number in the gradient's name.
 */
export function isGradientOf(gradient: string, parameter: string): boolean {
  const short = (name: string) => name.replace(/^.*\/weights\//, '').replace(/:\d+$/, '')
  return gradient === parameter || short(gradient) === short(parameter)
}
