/** The order of execution of a trial's tensors, which are saved in other orders. */

import { layersOf, roleOf } from '../../trial/kinds/roles.js'
import type { TrialView } from '../data.js'

/** The indices of tensors; those of a kind run from the model's input to its output, in the places that the kind has. */
export function executionOrder(view: TrialView, tensorOf: ReadonlyMap<string, number>): readonly number[] {
  const order = [...view.tensors.keys()]
  for (const kind of ['gradients', 'weights', 'biases'] as const) {
    const places = order.filter(i => view.tensors[i]!.kind === kind)
    const sorted = sortedOf(view, tensorOf, kind, places)
    for (const [i, place] of places.entries()) order[place] = sorted[i]!
  }
  return order
}

/**
 * The tensors of a kind in the order of the layers' inputs and outputs or, if none were saved, of their parameters. Gradients alone are
 * saved from the last layer to the first, but in a checkpoint.
 */
function sortedOf(
  { tensors, checkpoint }: TrialView,
  tensorOf: ReadonlyMap<string, number>,
  kind: 'gradients' | 'weights' | 'biases',
  ofKind: readonly number[],
): readonly number[] {
  const parameterOf = (i: number) => roleOf(tensors[i]!.name, kind).of
  const placeOf = (i: number): number | undefined => {
    for (const layer of layersOf(parameterOf(i))) {
      const places = ['_input_0', '_output_0', '/inputs', '/outputs'].flatMap(end => tensorOf.get(layer + end) ?? [])
      if (places.length > 0) return Math.min(...places)
    }
    return undefined
  }
  for (const place of [placeOf, (i: number) => tensorOf.get(parameterOf(i))]) {
    const places = new Map(ofKind.map(i => [i, place(i)]))
    if ([...places.values()].every(at => at !== undefined)) {
      // The parameters of a layer are in the order in which they were saved themselves.
      const parameterAt = (i: number) => tensorOf.get(parameterOf(i)) ?? i
      return [...ofKind].sort((a, b) => places.get(a)! - places.get(b)! || parameterAt(a) - parameterAt(b))
    }
  }
  return kind === 'gradients' && checkpoint === null ? [...ofKind].reverse() : ofKind
}
