/** Losses of training and validation, told apart by mode or, in XGBoost's trials, by name. */

import type { Rule } from '../rule.js'
import type { Moment } from './moment.js'
import { scalar } from './scalar.js'
import type { Choice, Selection } from './selection.js'

/** Words that end in "loss", and those of metrics for which larger is better. */
const WORDS =
  /(?<loss>loss)(?![a-z])|(?<![a-z])(?:train|val|valid|test|eval)?(?:m ?ap|map|acc|ndcg)(?![a-z])|accuracy(?![a-z])|auc(?:pr)?(?![a-z])|(?<![a-z])pre(?:@|$)/gi
const CAMEL_CASE = /(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g

/**
 * True if a name is that of a metric for which larger is better. The last of its words that says so decides: feature_map_loss is a loss,
 * Loss/accuracy is none.
 */
export function isMetric(name: string): boolean {
  const last = [...name.replace(CAMEL_CASE, ' ').matchAll(WORDS)].at(-1)
  return last !== undefined && last.groups!.loss === undefined
}

/** The losses that were saved at a step. */
export interface StepLosses {
  readonly training: readonly number[]
  readonly validation: readonly number[]
}

export class Losses {
  readonly #rule: Rule
  readonly #losses: Selection
  readonly #metrics: Selection
  readonly #seen = new Set<keyof StepLosses>()

  /**
   * @param select selects tensors for the rule
   * @param regex names of losses; if empty, the collection `losses`
   */
  constructor(rule: Rule, select: (choice: Choice) => Selection, regex: readonly string[] = []) {
    this.#rule = rule
    this.#losses = select(regex.length > 0 ? { regex } : { collections: ['losses'], optional: true })
    this.#metrics = select({ collections: ['losses', 'metrics'], regex, optional: true })
  }

  /** True if modes, not names, separate training from validation. */
  get hasModes(): boolean {
    const modes = this.#rule.baseTrial.modes()
    return modes.includes('EVAL') || (modes.length > 0 && !this.#metrics.names.some(name => name.startsWith('train-')))
  }

  /** Asks for the losses at a step. */
  at(moment: Moment): () => StepLosses {
    if (!this.hasModes) {
      const metrics = this.#metrics.at(moment).filter(({ name }) => !isMetric(name))
      const training = metrics.filter(({ name }) => name.startsWith('train-')).map(scalar)
      const validation = metrics.filter(({ name }) => /^(validation|eval|test)-/.test(name)).map(scalar)
      return () => this.#see({ training: availableNumbers(training), validation: availableNumbers(validation) })
    }
    const { mode } = moment
    const losses = this.#losses.at(moment).map(scalar)
    return () => {
      const values = availableNumbers(losses)
      return this.#see({ training: mode === 'TRAIN' ? values : [], validation: mode === 'EVAL' ? values : [] })
    }
  }

  /** True if any step so far had such a loss. */
  hasSeen(which: keyof StepLosses): boolean {
    return this.#seen.has(which)
  }

  /** A description of such losses, for a message that there are none. */
  describe(which: keyof StepLosses): string {
    const isTraining = which === 'training'
    if (this.hasModes)
      return `tensors of one element at steps of ${isTraining ? 'TRAIN' : 'EVAL'}: losses of the ${which}`
    return `metrics of one element named ${isTraining ? 'train-…' : 'validation-…, eval-… or test-…'}: losses of the ${which}`
  }

  #see(losses: StepLosses): StepLosses {
    if (losses.training.length > 0) this.#seen.add('training')
    if (losses.validation.length > 0) this.#seen.add('validation')
    return losses
  }
}

function availableNumbers(answers: readonly (() => number | null)[]): number[] {
  return answers.map(ask => ask()).filter(number => number !== null)
}
