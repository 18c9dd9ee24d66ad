/** Confusion: see docs/rules.md. */

import type { TensorValue } from '../../scan/job/tensor-value.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, type Judgement } from '../base/builtin.js'
import { argmax, elements, predictedClasses } from '../base/labels.js'
import type { Moment } from '../base/moment.js'
import { LABELS, PREDICTIONS } from '../base/names.js'
import type { Selection } from '../base/selection.js'
import { numberText } from '../base/wording.js'
import { integer, number, text } from '../parameters.js'

/**
 * Counts the predictions of each label at each step. Fires if, of the samples predicted to be of one class, less than `min_diag` are of
 * it, or more than `max_off_diag` are of another one.
 */
export class Confusion extends builtin({
  meaning: 'Classes are mistaken for one another too often.',
  advice: 'Look at the classes named here: are their labels right, are there enough of them, can they be told apart?',
  parameters: {
    category_no: integer(null, { min: 2 }),
    labels: text('labels'),
    predictions: text('predictions'),
    labels_collection: text('labels'),
    predictions_collection: text('predictions'),
    min_diag: number(0.9, { min: 0, max: 1 }),
    max_off_diag: number(0.1, { min: 0, max: 1 }),
  },
  onlyByName: 'it expects of the first step what only a trained model can do',
}) {
  readonly #labels = this.#places('labels', LABELS)
  readonly #predictions = this.#places('predictions', PREDICTIONS)

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const labels = singleTensor(this.#labels, moment)
    const predictions = singleTensor(this.#predictions, moment)
    if (labels === undefined || predictions === undefined) return
    const [labelValue, answered] = [labels.value(), predictions.value()]
    yield () => {
      const classes = classesOf(labelValue.value)
      return this.#judge(classes, predictedClasses(answered.value, classes.length), predictions)
    }
  }

  #judge(labels: readonly number[], predictions: ArrayLike<number>, { name, worker }: TensorAtStep) {
    const { min_diag, max_off_diag } = this.parameters
    const count = Math.min(labels.length, predictions.length)
    const size = this.parameters.category_no ?? Number.POSITIVE_INFINITY
    // predicted class → label → how often
    const columns = new Map<number, Map<number, number>>()
    for (let i = 0; i < count; i++) {
      const [label, predicted] = [labels[i]!, predictions[i]!]
      if (!(label >= 0 && label < size && predicted >= 0 && predicted < size)) continue
      const column = columns.get(predicted) ?? new Map<number, number>()
      column.set(label, (column.get(label) ?? 0) + 1)
      columns.set(predicted, column)
    }
    const findings = []
    for (const [predicted, column] of [...columns].sort(([a], [b]) => a - b)) {
      const sum = [...column.values()].reduce((sum, count) => sum + count, 0)
      const diagonal = (column.get(predicted) ?? 0) / sum
      if (diagonal < min_diag) {
        const message = `of what is predicted to be class ${predicted}, ${numberText(100 * diagonal)} % are, less than ${numberText(100 * min_diag)} %`
        findings.push({ tensor: name, worker, value: diagonal, threshold: min_diag, message })
      }
      for (const [label, count] of column) {
        const value = count / sum
        if (label === predicted || !(value > max_off_diag)) continue
        const message = `of what is predicted to be class ${predicted}, ${numberText(100 * value)} % are class ${label}, more than ${numberText(100 * max_off_diag)} %`
        findings.push({ tensor: name, worker, value, threshold: max_off_diag, message })
      }
    }
    return findings
  }

  /**
   * The places to look for labels or predictions, in order: the tensor of that name, the collection and, for the default names, the names
   * that hooks use.
   */
  #places(name: 'labels' | 'predictions', hookNames: string): readonly Selection[] {
    const { parameters } = this
    const [exact, collection] = [parameters[name], parameters[`${name}_collection`]]
    const regex = exact === name && collection === name ? [hookNames] : []
    const choices = [{ names: [exact] }, { names: [exact], collections: [collection] }, { regex }]
    this.select({ names: [exact], collections: [collection], regex, value: true })
    return choices.map(choice => this.select({ ...choice, optional: true, quiet: true, value: true }))
  }
}

function singleTensor(places: readonly Selection[], moment: Moment): TensorAtStep | undefined {
  for (const [i, place] of places.entries()) {
    const tensors = place.at(moment)
    if (tensors.length === 1 || (i === 0 && tensors.length > 0)) return tensors[0]
  }
  return undefined
}

function classesOf(value: TensorValue): number[] {
  if (value.shape.length === 2 && value.shape[1]! > 1) return argmax(value)
  return Array.from(elements(value), Math.round)
}
