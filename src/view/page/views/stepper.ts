/** A slider over steps, and a button that moves it. */

import { button, h } from '../dom.js'

const PLAY_MS = 160

/** @param show is called at once, and whenever the slider has moved */
export function stepper(
  length: number,
  text: (i: number) => string,
  show: (i: number) => void,
  first = 0,
  ms = PLAY_MS,
): HTMLElement {
  const said = h('output', {})
  const slider = h('input', {
    type: 'range',
    min: 0,
    max: length - 1,
    value: first,
    'aria-label': 'Step',
    oninput: () => move(Number(slider.value)),
  })
  const move = (i: number) => {
    slider.value = String(i)
    said.textContent = text(i)
    show(i)
  }
  let timer: ReturnType<typeof setInterval> | undefined
  const stop = () => {
    clearInterval(timer)
    timer = undefined
    play.textContent = 'Play'
    element.classList.remove('on')
  }
  const advance = () => {
    // The view may have been left.
    if (!slider.isConnected) return stop()
    move((Number(slider.value) + 1) % length)
  }
  const play = button('Play', () => {
    if (timer !== undefined) return stop()
    play.textContent = 'Stop'
    element.classList.add('on')
    timer = setInterval(advance, ms)
  })
  const element = h('div', { class: 'player' }, length > 1 ? play : null, length > 1 ? slider : null, said)
  move(first)
  return element
}
