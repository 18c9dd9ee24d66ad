/** The files beside the tensors of a checkpoint: losses (trainer_state.json) and configuration. Text, never trusted. */

import { FormatError } from '../../base/errors.js'
import { type JsonObject, jsonExcerpt, jsonTextEnd, parseJsonObject } from '../json.js'

/** A longer file is not read. */
export const MAX_BESIDE_BYTES = 64 << 20
export const TRAINER_STATE = 'trainer_state.json'
export const CONFIG = 'config.json'

/** Numbers that a training logged at a step. */
export type Logged = ReadonlyMap<string, number>

/** The largest number of logged names, each of which becomes a tensor. */
const MAX_NAMES = 10_000
const MAX_NAME_LENGTH = 1000

/** Values in the log of a Trainer that say nothing about the training. */
const NO_SCALARS = /^(?:step|epoch|total_flos)$|_runtime$|_per_second$|^train_(?:tokens|samples)/

/**
 * The log of Hugging Face's Trainer, by step. After a restart, the later values of a step count.
 * @throws FormatError `BadTrainerState`
 */
export function parseTrainerState(text: string, url: string): ReadonlyMap<number, Logged> {
  const wrong = (expected: string, got: string): FormatError =>
    new FormatError('BadTrainerState', `${url}: expected ${expected}, got ${got}`, { url, expected, got })
  const history = parseJsonObject(withoutBareNumbers(text), url, 'BadTrainerState').log_history
  if (history === undefined) return new Map()
  if (!Array.isArray(history)) throw wrong('log_history: a list', jsonExcerpt(history))
  const steps = new Map<number, Map<string, number>>()
  const names = new Set<string>()
  for (const entry of history as readonly unknown[]) {
    if (typeof entry !== 'object' || entry === null) continue
    const { step } = entry as { readonly step?: unknown }
    if (!Number.isSafeInteger(step) || (step as number) < 0) continue
    let keys = 0
    for (const name in entry) {
      if (++keys > MAX_NAMES) break
      const number = numberOf((entry as JsonObject)[name])
      if (number === null || name.length > MAX_NAME_LENGTH || NO_SCALARS.test(name)) continue
      if (names.size === MAX_NAMES && !names.has(name)) continue
      names.add(name)
      const logged = steps.get(step as number) ?? new Map<string, number>()
      steps.set(step as number, logged.set(name, number))
    }
  }
  return steps
}

/** NaN and infinities, as Python writes them, become texts. */
export function withoutBareNumbers(text: string): string {
  if (!/\b(?:Infinity|NaN)\b/.test(text)) return text
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const quoteAt = text.indexOf('"', at)
    const end = quoteAt < 0 ? text.length : quoteAt
    pieces.push(text.slice(at, end).replace(/-?\bInfinity\b|\bNaN\b/g, '"$&"'))
    at = quoteAt < 0 ? end : jsonTextEnd(text, quoteAt)
    pieces.push(text.slice(end, at))
  }
  return pieces.join('')
}

function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return value
  return value === 'NaN' || value === 'Infinity' || value === '-Infinity' ? Number(value) : null
}

/** The facts in a model's configuration. */
export interface ModelFacts {
  /** `LlamaForCausalLM`. */
  readonly architecture: string | null
  /** The dtype that the model was meant to have; its tensors may have another. */
  readonly dtype: string | null
}

const MAX_FACT_LENGTH = 200

/** Reads a model's configuration. Another file gives no facts. */
export function parseConfig(text: string): ModelFacts {
  try {
    const config = parseJsonObject(withoutBareNumbers(text), '', 'BadConfig')
    const [architecture] = Array.isArray(config.architectures) ? config.architectures : [config.model_type]
    return { architecture: factOf(architecture), dtype: factOf(config.torch_dtype ?? config.dtype) }
  } catch {
    return { architecture: null, dtype: null }
  }
}

/** A text as it can be shown. */
function factOf(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  return value.slice(0, MAX_FACT_LENGTH).replace(/[\u0000-\u001f\u007f-\u009f]/g, '')
}
