/** Answers that are lost, of tensors that are judged together. */

import type { Question } from '../../trial/measure/question.js'
import type { Judgements } from './builtin.js'

/** Judgements that report the answers that are lost: tensors that are judged together are judged without them. */
export function lost(questions: readonly Question<unknown>[]): Judgements {
  return {
    count: questions.length,
    judge: i => {
      const { error } = questions[i]!
      if (error !== undefined) throw error
      return undefined
    },
  }
}
