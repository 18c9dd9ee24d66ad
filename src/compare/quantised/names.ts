/** Finds quantised weights by name: numbers of few bits with scales, under the names that quantisation libraries use. */

import type { QuantisedForm } from '../../scan/job/quantised-job.js'

/** The tensors of a quantised weight. */
export interface QuantisedTensors {
  readonly form: QuantisedForm
  readonly weight: string
  readonly scale: string
  /** The global scale (NVFP4), which multiplies or divides the other scales. */
  readonly outer?: { readonly name: string; readonly divides: boolean }
}

/** Tensors that quantisation adds beside weights; unquantised models have no counterpart. */
const SCALES =
  /(?:[._](?:weight_scale(?:_inv|_2)?|weight_global_scale|input_scale|input_global_scale|[kv]_scale)|_scales)$/

export function isScale(name: string): boolean {
  return SCALES.test(name)
}

/** The stem of the weight that a scale belongs to: `fc1` for `fc1.weight_scale`. */
export function stemOfScale(name: string): string {
  return name.replace(SCALES, '')
}

/** True for packed numbers under a name of their own, instead of the weight's. */
export function isPacked(name: string): boolean {
  return /(?:\.weight_packed|_blocks)$/.test(name)
}

/** The tensors of a quantised weight; null if it is not quantised, or in an unknown way. */
export function quantisedTensors(weight: string, names: ReadonlySet<string>): QuantisedTensors | null {
  const stem = weight.replace(/\.weight$/, '')
  const firstExisting = (...candidates: readonly string[]) => candidates.find(name => names.has(name))
  const [blocks, groups] = [`${weight}_blocks`, `${weight}_scales`]
  if (names.has(blocks) && names.has(groups)) return { form: 'mxfp4', weight: blocks, scale: groups }
  const stored = firstExisting(weight, `${stem}.weight_packed`)
  const scale = firstExisting(`${stem}.weight_scale_inv`, `${stem}.weight_scale`)
  if (stem === weight || stored === undefined || scale === undefined) return null
  const [factor, divisor] = [`${stem}.weight_scale_2`, `${stem}.weight_global_scale`]
  const outer = firstExisting(factor, divisor)
  if (outer === undefined) return stored === weight ? { form: 'scaled', weight: stored, scale } : null
  return { form: 'nvfp4', weight: stored, scale, outer: { name: outer, divides: outer === divisor } }
}

/** Tensors that GPTQ, AWQ, bitsandbytes and compressed-tensors store beside a weight, or in its place. */
const OTHER_PARTS =
  /\.(?:qweight|qzeros|scales|g_idx|SCB|weight_(?:format|packed|shape|zero_point|g_idx)|weight\.(?:(?:nested_)?(?:absmax|quant_map)|quant_state\..+))$/

/** The stem of the weight that a tensor may be a part of: `fc1` for `fc1.qweight`; null if it is no part. */
export function stemOfPart(name: string): string | null {
  const end = name.search(OTHER_PARTS)
  return end < 0 ? null : name.slice(0, end)
}

/** The kind of quantisation of a weight that can't be compared; null if there is none. */
export function otherQuantisation(weight: string, names: ReadonlySet<string>): string | null {
  const stem = weight.replace(/\.weight$/, '')
  if (names.has(`${stem}.weight_packed`)) return 'compressed-tensors'
  if (names.has(`${stem}.qweight`)) return names.has(`${stem}.g_idx`) ? 'GPTQ' : 'GPTQ or AWQ'
  return [`${weight}.absmax`, `${weight}.quant_map`, `${stem}.SCB`].some(name => names.has(name))
    ? 'bitsandbytes'
    : null
}
