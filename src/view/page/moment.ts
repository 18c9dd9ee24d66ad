/** The step that somebody points at or chooses: one for all pictures. */

class Moment {
  #step: number | null = null
  readonly #followers = new Map<Element, (step: number) => void>()
  #isTelling = false
  /** Is called whenever another step is pointed at. */
  onPoint: () => void = () => {}

  /** The number of a step; null: nobody has chosen one. */
  get step(): number | null {
    return this.#step
  }

  point(step: number): void {
    if (step === this.#step || this.#isTelling) return
    this.#step = step
    this.#isTelling = true
    for (const [element, show] of this.#followers) {
      if (element.isConnected) show(step)
      else this.#followers.delete(element)
    }
    this.#isTelling = false
    this.onPoint()
  }

  /** Shows each step that is pointed at, for as long as the element is in the page. */
  follow(element: Element, show: (step: number) => void): void {
    this.#followers.set(element, show)
  }

  /** The index of the step, or of the last before it. @param steps ascending @returns `otherwise` where none has been chosen */
  indexIn(steps: readonly number[], otherwise: number): number {
    const { step } = this
    return step === null
      ? otherwise
      : Math.max(
          0,
          steps.findLastIndex(one => one <= step),
        )
  }
}

/** There is one page, and one step. */
export const moment = new Moment()
