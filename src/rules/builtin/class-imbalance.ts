/** ClassImbalance: see docs/rules.md. */

import type { TensorValue } from '../../scan/job/tensor-value.js'
import { builtin, type Judgement } from '../base/builtin.js'
import { areIntegers, argmax, elements, predictedClasses } from '../base/labels.js'
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

  protected override *examine(moment: Moment): Iterable<Judgement> {
    const seen = this.#seen.of(moment)
    const predictions = this.#predictions.at(moment)
    let hasLabels = false
    for (const [i, tensor] of this.#labels.at(moment).entries()) {
      const [labels, predicted] = [tensor.value(), predictions[i]?.value()]
      yield () => {
        this.#add(seen, labels.value, predicted?.answer)
        hasLabels = true
        return null
      }
    }
    yield () => (hasLabels ? this.#judge(seen).map(finding => ({ worker: moment.worker, ...finding })) : undefined)
  }

  #add({ count, wrong }: Seen, labels: TensorValue, predictions: TensorValue | undefined): void {
    const isOneHot =
      this.parameters.argmax && labels.shape.length > 1 && labels.shape.length === predictions?.shape.length
    const classes = isOneHot ? argmax(labels) : elements(labels)
    // Fractions are targets of a regression, not classes.
    if (!areIntegers(classes)) return
    const predicted = predictions && predictedClasses(predictions, classes.length, this.parameters.argmax)
    for (let i = 0; i < classes.length; i++) {
      const label = classes[i]!
      count.set(label, (count.get(label) ?? 0) + 1)
      const isWrong = predicted !== undefined && i < predicted.length && predicted[i]! !== label
      if (isWrong) wrong.set(label, (wrong.get(label) ?? 0) + 1)
    }
  }

  #judge({ count, wrong }: Seen): Found[] {
    const { samples, threshold_imbalance, threshold_misprediction } = this.parameters
    const counts = [...count].sort(([, a], [, b]) => a - b)
    if (counts.length === 0 || counts.reduce((sum, [, count]) => sum + count, 0) < samples) return []
    const findings: Found[] = []
    const [[smallest, fewest], [largest, most]] = [counts[0]!, counts.at(-1)!]
    const ratio = most / fewest
    if (counts.length > 1 && ratio > threshold_imbalance) {
      const message = `class ${largest} has ${numberText(ratio)} times as many labels as class ${smallest}, more than ${numberText(threshold_imbalance)} times`
      findings.push({ value: ratio, threshold: threshold_imbalance, message })
    }
    for (const [label, count] of counts) {
      const value = (wrong.get(label) ?? 0) / count
      if (!(value > threshold_misprediction)) continue
      const message = `${numberText(100 * value)} % of class ${label} are predicted wrongly, more than ${numberText(100 * threshold_misprediction)} %`
      findings.push({ value, threshold: threshold_misprediction, message })
    }
    return findings
  }
}
