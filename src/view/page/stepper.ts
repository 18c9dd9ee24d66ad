/** A slider over steps, and a button that plays them. */

import { button, h } from './dom.js'
import { moment } from './moment.js'

const PLAY_MS = 160

export interface StepperOptions {
  /** The numbers of the steps, ascending. */
  readonly steps: readonly number[]
  readonly text: (i: number) => string
  /** Called at once, and whenever the slider moves or another step is pointed at. */
  readonly show: (i: number) => void
  /** The first index, if no step has been chosen. */
  readonly first: number
  readonly ms?: number
}

/** The index of the last step with something to see; the last step if there is none. */
export function firstShown(steps: readonly number[], isSeen: (i: number) => boolean): number {
  return [...steps.keys()].findLast(isSeen) ?? steps.length - 1
}

/**
 * A sentence about the steps after the last one with something to see; empty if there are none.
 * @param steps of one trial @param what the numbers without anything to see are @param place the trial's index of two; null for a single trial
 */
export function lostText(
  steps: readonly number[],
  isSeen: (i: number) => boolean,
  what: 'NaN or infinite' | 'NaN, infinite or 0',
  place: number | null = null,
): string {
  const next = steps[firstShown(steps, isSeen) + 1]
  return next === undefined ? '' : `From step ${next} on, all${place === null ? '' : ` of ${'AB'[place]}`} are ${what}.`
}

/** True if numbers have something to see: one is neither 0 nor NaN nor infinite, or all are finite. */
export function areSeen(numbers: readonly number[]): boolean {
  return numbers.some(x => Number.isFinite(x) && x !== 0) || numbers.every(Number.isFinite)
}

export function stepper({ steps, text, show, first, ms = PLAY_MS }: StepperOptions): HTMLElement {
  const { length } = steps
  const said = h('output', {})
  const slider = h('input', {
    type: 'range',
    min: 0,
    max: length - 1,
    value: first,
    'aria-label': 'Step',
    oninput: () => choose(Number(slider.value)),
  })
  const move = (i: number) => {
    slider.value = String(i)
    said.textContent = text(i)
    slider.setAttribute('aria-valuetext', text(i))
    show(i)
  }
  const choose = (i: number) => {
    move(i)
    moment.point(steps[i]!)
  }
  let timer: ReturnType<typeof setInterval> | undefined
  const stop = () => {
    clearInterval(timer)
    timer = undefined
    play.textContent = 'Play'
    element.classList.remove('on')
    element.dispatchEvent(new Event('stopped', { bubbles: true }))
  }
  const advance = () => {
    // The reader may have left the view.
    if (!slider.isConnected) return stop()
    choose((Number(slider.value) + 1) % length)
  }
  const play = button('Play', () => {
    if (timer !== undefined) return stop()
    play.textContent = 'Stop'
    element.classList.add('on')
    timer = setInterval(advance, ms)
  })
  const element = h('div', { class: 'player' }, length > 1 ? play : null, length > 1 ? slider : null, said)
  moment.follow(element, () => {
    const i = moment.indexIn(steps, first)
    if (Number(slider.value) !== i) move(i)
  })
  move(moment.indexIn(steps, first))
  return element
}
