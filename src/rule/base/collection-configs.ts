/** What has to be saved for a rule, as the configuration of SageMaker's hook says it (rules.md §1, "RC"). */

import { UsageError } from '../../errors.js'
import type { Framework } from '../../types.js'
import type { HookCollection } from '../finding.js'
import { patternFor } from './names.js'
import type { Choice } from './selection.js'

/** That of SageMaker's own configurations. */
const SAVE_INTERVAL = '500'

/**
 * @param ruleName a collection is named after it where the rule has none
 * @param framework by whose names; undefined: by all that the rule looks for
 * @throws UsageError for a pattern with a count such as {1,2}
 */
export function collectionConfigsOf(
  ruleName: string,
  choices: readonly Choice[],
  framework?: Framework,
): readonly HookCollection[] {
  const patterns = new Map<string, Set<string>>()
  // A rule that would look at everything needs no more than what it looks for.
  const narrow = choices.filter(({ all }) => !all)
  for (const { collections = [], names = [], regex = [], all } of narrow.length > 0 ? narrow : choices) {
    const sought = framework === undefined ? regex : regex.map(pattern => patternFor(framework, pattern))
    const wanted = [...sought, ...names.map(name => `^${escaped(name)}$`), ...(all ? ['.*'] : [])]
    const own = all ? 'all' : `${ruleName.replace(/(?!^)(?=[A-Z][a-z])/g, '_').toLowerCase()}_tensors`
    const into = collections.length > 0 ? collections : wanted.length > 0 ? [own] : []
    for (const name of into) patterns.set(name, patterns.get(name) ?? new Set())
    for (const pattern of wanted) patterns.get(into[0]!)!.add(withoutCommas(pattern))
  }
  return [...patterns].map(([name, of]) => ({
    CollectionName: name,
    CollectionParameters: {
      ...(of.size > 0 && { include_regex: [...of].join(',') }),
      save_interval: SAVE_INTERVAL,
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
