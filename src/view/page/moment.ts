/** The step that the reader points at or chooses, shared by all pictures. */

class Moment {
  #step: number | null = null
  readonly #followers = new Map<Element, (step: number) => void>()
  #isTelling = false
  /** Called whenever another step is pointed at. */
  onPoint: () => void = () => {}

  /** The chosen step's number; null: none was chosen. */
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

  /** Calls `show` for each step that is pointed at, while the element is in the page. */
  follow(element: Element, show: (step: number) => void): void {
    this.#followers.set(element, show)
  }

  /** The index of the step, or of the last one before it. @param steps ascending @returns `otherwise` if no step was chosen */
  indexIn(steps: readonly number[], otherwise: number): number {
    const { step } = this
    return step === null
      ? otherwise
      : Math.max(
          0,
          steps.findLastIndex(candidate => candidate <= step),
        )
  }
}

/** The one moment of the page. */
export const moment = new Moment()
