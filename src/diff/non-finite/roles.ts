/** What computes what, as far as the names that smdebug's hooks give tell: layers, their inputs and outputs, weights and gradients. */

/** The parts of a name that tell what it is. */
export interface Role {
  readonly kind: 'input' | 'output' | 'gradient' | 'parameter' | 'other'
  /** Of inputs and outputs: the layer. Of a gradient: the parameter. */
  readonly of: string
}

/** @param isParameter whether a tensor is a weight, a bias or another parameter, as collections and names tell */
export function roleOf(name: string, isParameter: (name: string) => boolean): Role {
  const gradient = /^gradients?\/(.*)$/.exec(name)
  if (gradient) return { kind: 'gradient', of: gradient[1]!.replace(/Grad$/, '') }
  const layer = /^(.*?)[_/](input|output)s?(?:[_:]\d+)*$/.exec(name)
  if (layer) return { kind: layer[2] === 'input' ? 'input' : 'output', of: layer[1]! }
  return isParameter(name) ? { kind: 'parameter', of: name } : { kind: 'other', of: name }
}

/** Whether a parameter belongs to a layer: `CNN_fc1.weight` and `fc1`, `fc1/kernel:0` and `fc1`, `acts.0` and `Net_acts.0.weight`. */
export function isOfLayer(parameter: string, layer: string): boolean {
  const owner = parameter.replace(/[./][^./]*$/, '')
  return owner === layer || owner.endsWith(`_${layer}`) || owner.endsWith(`/${layer}`) || owner.endsWith(`.${layer}`)
}
