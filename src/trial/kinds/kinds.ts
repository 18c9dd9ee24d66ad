/** The kind of each tensor: from its collections or else from the names that smdebug's hooks give. */

import type { Trial } from '../trial.js'

/** The kinds of tensors that collections and names tell apart. */
export const KINDS = ['losses', 'metrics', 'gradients', 'weights', 'biases', 'outputs', 'inputs', 'other'] as const
export type Kind = (typeof KINDS)[number]

/** The collections of smdebug whose members are of one kind. */
const COLLECTIONS: readonly (readonly [string, Kind])[] = [
  ['losses', 'losses'],
  ['metrics', 'metrics'],
  ['sm_metrics', 'metrics'],
  ['gradients', 'gradients'],
  ['weights', 'weights'],
  ['biases', 'biases'],
]

/** The kind by name; the first match counts. */
const NAMES: readonly (readonly [RegExp, Kind])[] = [
  // XGBoost's tensors.
  [/^(hyperparameters|feature_importance|average_shap|full_shap|trees?)\b/, 'other'],
  // The norm of all gradients, as the Trainer logs it.
  [/^(grad(ient)?_norm)$/, 'metrics'],
  [/^grad(ient)?s?[/._]|\/gradients?\/|Grad\b|\.grad$/i, 'gradients'],
  [/[_/.]inputs?([_:]\d+)?$/i, 'inputs'],
  [/loss(?!.*_input)/i, 'losses'],
  [/acc(uracy)?\b|error$|auc|logloss|rmse|^eval_|metric/i, 'metrics'],
  [/bias(:\d+)?$|beta(:\d+)?$/i, 'biases'],
  [/weights?(:\d+)?$|kernel(:\d+)?$|gamma(:\d+)?$/i, 'weights'],
  [/[_/.]outputs?([_:]\d+)?$|relu|sigmoid|softmax|tanh|activation/i, 'outputs'],
]

export function kindsOf(trial: Trial): (name: string) => Kind {
  const collections = trial.collections()
  const members = COLLECTIONS.map(([name, kind]) => [new Set(collections.get(name)?.members ?? []), kind] as const)
  const byCollection = (name: string): Kind | undefined => members.find(([names]) => names.has(name))?.[1]
  return name => {
    const kind = byCollection(name)
    // A loss module's inputs are in its collection, too.
    if (kind !== undefined && !(kind === 'losses' && /_input(_\d+)?$/i.test(name))) return kind
    return NAMES.find(([pattern]) => pattern.test(name))?.[1] ?? 'other'
  }
}
