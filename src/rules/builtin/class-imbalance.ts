/** ClassImbalance: see docs/rules.md. */

import type { TensorValue } from '../../scan/job/tensor-value.js'
import type { TensorAtStep } from '../../trial/measure/tensor-at-step.js'
import { builtin, type Judgement, type Judgements } from '../base/builtin.js'
import { areIntegers, areOneHot, argmax, elements, predictedClasses } from '../base/labels.js'
import { lost } from '../base/lost.js'
import { Memory, type Moment } from '../base/moment.js'
import { LABELS, PREDICTIONS } from '../base/names.js'
import { numberText } from '../base/wording.js'
import { flag, integer, number, text } from '../parameters.js'
import type { Found } from '../rule.js'

/** The number of labels of each class, and the number of wrong predictions among them. */
interface Seen {
  readonly count: Map<number, number>
  readonly wrong: Map<number, number>
}

/**
 * Counts labels over the steps. Once there are `samples` of them, fires if the largest class has more than `threshold_imbalance` times as
 * many as the smallest, or if more than `threshold_misprediction` of a class is predicted as another one.
 */
export class ClassImbalance extends builtin({
  meaning: 'Classes are sampled unevenly, or one of them is mostly mistaken for others.',
  advice: 'Sample the classes evenly, weight the loss by class, or collect more data of the small ones.',
  parameters: {
    threshold_imbalance: number(10),
    threshold_misprediction: number(0.7),
    samples: integer(500),
    argmax: flag(false),
    labels_regex: text('.*labels'),
    predictions_regex: text('.*predictions'),
  },
  suggested: {
    threshold_misprediction: [
      '1',
      'at the first steps every class is mispredicted, and they count as much as the last ones. No share is above 1',
    ],
    labels_regex: [LABELS, 'the names that the hooks of PyTorch, Keras and XGBoost write'],
    predictions_regex: [PREDICTIONS, 'the names that the hooks of PyTorch, Keras and XGBoost write'],
  },
}) {
  readonly #labels = this.select({ regex: [this.parameters.labels_regex], value: true })
  readonly #predictions = this.select({ regex: [this.parameters.predictions_regex], value: true, optional: true })
  readonly #seen = new Memory((): Seen => ({ count: new Map(), wrong: new Map() }))

  protected override *examine(moment: Moment): Iterable<Judgement | Judgements> {
    const seen = this.#seen.of(moment)
    const predictions = this.#predictions.at(moment)
    let hasLabels = false
    for (const [i, tensor] of this.#labels.at(moment).entries()) {
      const [labels, predicted] = [tensor.value(), predictions[i]?.value()]
      yield () => {
        hasLabels = this.#add(seen, labels.value, predicted && (predicted.answer ?? null), tensor) || hasLabels
        return undefined
      }
      if (predicted) yield lost([predicted])
    }
    yield () => (hasLabels ? this.#judge(seen, moment) : undefined)
  }

  /** @param predictions undefined if there are none, null if they can't be read @returns true if the labels were counted */
  #add(
    { count, wrong }: Seen,
    labels: TensorValue,
    predictions: TensorValue | null | undefined,
    { name, step }: TensorAtStep,
  ): boolean {
    const classes = this.#classesOf(labels, predictions)
    if (classes === null) {
      this.needs(
        `predictions that can be read, whose shape tells how ${name} has classes; at step ${step} there are none`,
      )
      return false
    }
    // Fractions are targets of a regression, not classes.
    if (!areIntegers(classes)) {
      this.needs(`labels that are whole numbers, as classes are; ${name} at step ${step} has others`)
      return false
    }
    const predicted = predictions ? predictedClasses(predictions, classes.length, this.parameters.argmax) : undefined
    for (let i = 0; i < classes.length; i++) {
      const label = classes[i]!
      count.set(label, (count.get(label) ?? 0) + 1)
      const isWrong = predicted !== undefined && i < predicted.length && predicted[i]! !== label
      if (isWrong) wrong.set(label, (wrong.get(label) ?? 0) + 1)
    }
    return true
  }

  /** The classes of labels, which are one-hot if they have as many axes as predictions; null if it is unknown whether they are. */
  #classesOf(labels: TensorValue, predictions: TensorValue | null | undefined): ArrayLike<number> | null {
    if (!this.parameters.argmax || labels.shape.length < 2) return elements(labels)
    if (predictions) return labels.shape.length === predictions.shape.length ? argmax(labels) : elements(labels)
    // Without predictions the values tell.
    if (areOneHot(labels)) return argmax(labels)
    return predictions === undefined ? elements(labels) : null
  }

  #judge({ count, wrong }: Seen, { step, worker }: Moment): readonly Found[] | undefined {
    const { samples, threshold_imbalance, threshold_misprediction } = this.parameters
    const counts = [...count].sort(([, a], [, b]) => a - b)
    const total = counts.reduce((sum, [, count]) => sum + count, 0)
    if (counts.length === 0 || total < samples)
      return this.needs(`at least ${samples} labels; up to step ${step} there were ${total}`)
    const findings: Found[] = []
    const [[smallest, fewest], [largest, most]] = [counts[0]!, counts.at(-1)!]
    const ratio = most / fewest
    if (counts.length > 1 && ratio > threshold_imbalance) {
      const message = `class ${largest} has ${numberText(ratio)} times as many labels as class ${smallest}, more than ${numberText(threshold_imbalance)} times`
      findings.push({ worker, value: ratio, threshold: threshold_imbalance, message })
    }
    for (const [label, count] of counts) {
      const value = (wrong.get(label) ?? 0) / count
      if (!(value > threshold_misprediction)) continue
      const message = `${numberText(100 * value)} % of class ${label} are predicted wrongly, more than ${numberText(100 * threshold_misprediction)} %`
      findings.push({ worker, value, threshold: threshold_misprediction, message })
    }
    return findings
  }
}
