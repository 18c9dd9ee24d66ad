/** The collections to save for a rule, as a configuration of SageMaker's hook. */

import { UsageError } from '../../base/errors.js'
import { entryOf } from '../../base/maps.js'
import type { CollectionConfigsOptions, HookCollection } from '../finding.js'
import { collectionFor, patternFor } from './names.js'
import type { Choice } from './selection.js'

/** The save interval of SageMaker's own configurations. */
const SAVE_INTERVAL = 500

/**
 * @param ruleName a collection without a name of its own gets this one
 * @param options the framework whose names are used (default: all that the rule looks for), and the save interval
 * @throws UsageError for a pattern with a count such as {1,2}
 */
export function collectionConfigsOf(
  ruleName: string,
  choices: readonly Choice[],
  { framework, saveInterval = SAVE_INTERVAL }: CollectionConfigsOptions = {},
): readonly HookCollection[] {
  const patterns = new Map<string, Set<string>>()
  // A rule that would look at everything needs only what it looks for.
  const narrow = choices.filter(({ all }) => !all)
  for (const { collections = [], names = [], regex = [], all } of narrow.length > 0 ? narrow : choices) {
    const ownCollection = all ? 'all' : `${ruleName.replace(/(?!^)(?=[A-Z][a-z])/g, '_').toLowerCase()}_tensors`
    const into = (name: string): Set<string> => entryOf(patterns, name, () => new Set<string>())
    for (const name of collections) into(name)
    const home = collections[0] ?? regex.map(collectionFor).find(name => name !== null) ?? ownCollection
    for (const pattern of regex) {
      const wanted = framework === undefined ? pattern : patternFor(framework, pattern)
      into(home).add(withoutCommas(wanted))
    }
    for (const pattern of [...names.map(name => `^${escaped(name)}$`), ...(all ? ['.*'] : [])]) {
      into(home).add(withoutCommas(pattern))
    }
  }
  return [...patterns].map(([name, expressions]) => ({
    CollectionName: name,
    CollectionParameters: {
      ...(expressions.size > 0 && { include_regex: [...expressions].join(',') }),
      save_interval: String(saveInterval),
    },
  }))
}

function escaped(name: string): string {
  return name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

/** Commas separate patterns. */
function withoutCommas(pattern: string): string {
  if (!/\{\d*,\d*\}/.test(pattern)) return pattern.replaceAll(',', '\\x2c')
  const message = `expected a pattern without a count such as {1,2}, which a hook's configuration can't hold, got ${JSON.stringify(pattern)}`
  throw new UsageError(message, { pattern })
}
