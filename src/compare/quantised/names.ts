/**
 * Weights beside what quantisation made of them: numbers of few bits, and scales that they are multiplied with. Which tensors belong together
 * is told by their names, as the libraries that write them give them.
 */

import type { QuantisedForm } from '../../scan/job/quantised.js'

/** The tensors that quantised weights are made of. */
export interface QuantisedTensors {
  readonly form: QuantisedForm
  readonly weight: string
  readonly scale: string
  /** The scale of a whole tensor (NVFP4), which multiplies or divides the other scales. */
  readonly outer?: { readonly name: string; readonly divides: boolean }
}

/** Tensors that quantisation adds beside weights: they have no counterpart among weights that are not quantised. */
const SCALES =
  /(?:[._](?:weight_scale(?:_inv|_2)?|weight_global_scale|input_scale|input_global_scale|[kv]_scale)|_scales)$/

export function isScale(name: string): boolean {
  return SCALES.test(name)
}

/** True of numbers under a name of their own, in the place of a weight's. */
export function isPacked(name: string): boolean {
  return /(?:\.weight_packed|_blocks)$/.test(name)
}

/** The tensors that stand for a weight; null: it is not quantised, or in a way that is not known. */
export function quantisedTensors(weight: string, names: ReadonlySet<string>): QuantisedTensors | null {
  const stem = weight.replace(/\.weight$/, '')
  const there = (...candidates: readonly string[]) => candidates.find(name => names.has(name))
  const [blocks, groups] = [`${weight}_blocks`, `${weight}_scales`]
  if (names.has(blocks) && names.has(groups)) return { form: 'mxfp4', weight: blocks, scale: groups }
  const stored = there(weight, `${stem}.weight_packed`)
  const scale = there(`${stem}.weight_scale_inv`, `${stem}.weight_scale`)
  if (stem === weight || stored === undefined || scale === undefined) return null
  const [factor, divisor] = [`${stem}.weight_scale_2`, `${stem}.weight_global_scale`]
  const outer = there(factor, divisor)
  if (outer === undefined) return stored === weight ? { form: 'scaled', weight: stored, scale } : null
  return { form: 'nvfp4', weight: stored, scale, outer: { name: outer, divides: outer === divisor } }
}

/** The known quantisation of a weight that is not compared; null if there is none. */
export function otherQuantisation(weight: string, names: ReadonlySet<string>): string | null {
  const stem = weight.replace(/\.weight$/, '')
  if (names.has(`${stem}.weight_packed`)) return 'compressed-tensors'
  if (names.has(`${stem}.qweight`)) return names.has(`${stem}.g_idx`) ? 'GPTQ' : 'GPTQ or AWQ'
  return names.has(`${weight}.absmax`) || names.has(`${weight}.quant_map`) ? 'bitsandbytes' : null
}
