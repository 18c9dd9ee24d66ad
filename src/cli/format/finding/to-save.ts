/** The tensors to save for rules that lack data, as a configuration of SageMaker's hook. */

import { UsageError } from '../../../base/errors.js'
import type { HookCollection, Missing } from '../../../rules/finding.js'
import type { Rule } from '../../../rules/rule.js'
import type { Trial } from '../../../trial/trial.js'
import { safeJson } from '../../terminal.js'
import { isFindingOf } from './format.js'

/** The collections of rules that lack data, each once, with the patterns of all of them. */
export function collectionsToSave(
  rules: Iterable<Rule>,
  missing: readonly Missing[],
  trial: Trial,
): readonly HookCollection[] {
  const saveInterval = intervalOf(trial)
  const merged = new Map<string, HookCollection>()
  for (const rule of rules) {
    if (!missing.some(isFindingOf(rule))) continue
    for (const collection of collectionsOf(rule, saveInterval)) {
      const before = merged.get(collection.CollectionName)
      merged.set(collection.CollectionName, before === undefined ? collection : both(before, collection))
    }
  }
  return [...merged.values()]
}

/** One collection per line, unwrapped, so that it can be copied. */
export function toSaveText(collections: readonly HookCollection[]): string {
  const lines = collections.map(collection => `    ${safeJson(JSON.stringify(collection))}`)
  return `  {"CollectionConfigurations": [\n${lines.join(',\n')}\n  ]}\n`
}

/** The number of steps between two saved ones, in mode TRAIN if there is one. Undefined if there are too few. */
function intervalOf(trial: Trial): number | undefined {
  const steps = trial.steps({ ...(trial.modes().includes('TRAIN') && { mode: 'TRAIN' }), showIncompleteSteps: true })
  const gaps = steps.slice(1).map((step, i) => step - steps[i]!)
  return gaps.length === 0 ? undefined : gaps.reduce((least, gap) => Math.min(least, gap))
}

function collectionsOf(rule: Rule, saveInterval: number | undefined): readonly HookCollection[] {
  try {
    return rule.collectionConfigs(saveInterval === undefined ? {} : { saveInterval })
  } catch (error) {
    // A configuration can't hold every pattern that a rule can look for.
    if (error instanceof UsageError) return []
    throw error
  }
}

function both(a: HookCollection, b: HookCollection): HookCollection {
  const patterns = [a, b].flatMap(({ CollectionParameters }) => CollectionParameters.include_regex?.split(',') ?? [])
  const merged = { ...a.CollectionParameters, ...b.CollectionParameters }
  return {
    CollectionName: a.CollectionName,
    CollectionParameters: {
      ...merged,
      ...(patterns.length > 0 && { include_regex: [...new Set(patterns)].join(',') }),
    },
  }
}
