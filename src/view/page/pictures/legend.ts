/** The legend of a heat map. */

import { h, term } from '../dom.js'
import { short } from '../text.js'
import { cssOf, gradientOf } from './colors.js'
import { NOT_FINITE, type Shading, ZERO } from './shading.js'

/** A square in a colour. */
export function chip(pixel: number): HTMLElement {
  return h('i', { class: 'chip', style: `background: ${cssOf(pixel)}` })
}

/** The legend of one shading. @param isWhole true if every cell has a number */
export function legendOf(shading: Shading, name: string, isWhole = false): HTMLElement {
  const { isDiverging, low, high, scale, beyond } = shading
  const isFar = beyond !== null && beyond.high > high
  const isNear = beyond !== null && beyond.low < low
  const ends = isDiverging
    ? [`${isFar ? '≤ ' : ''}−${short(high)}`, '0', `${isFar ? '≥ ' : ''}${short(high)}`]
    : [`${isNear ? '≤ ' : ''}${short(low)}`, `${isFar ? '≥ ' : ''}${short(high)}`]
  const sizes = isDiverging ? 'magnitudes' : 'numbers'
  return scaleOf({
    title: shading.hasRange ? `${name}, ${scale === 'log' ? 'logarithmic' : 'linear'}` : `${name}: nothing but`,
    shading,
    ends,
    zero: scale === 'log' && !isDiverging ? '0' : null,
    isWhole,
    far:
      beyond === null
        ? ''
        : `; ${[
            isNear ? `the smallest is ${short(beyond.low)}` : '',
            isFar ? `the largest is ${short(beyond.high)}` : '',
          ]
            .filter(text => text !== '')
            .join(', ')}`,
    sizes,
  })
}

/** The legend of ratios between two trials, as powers of 2. */
export function ratioLegend(shading: Shading, isWhole: boolean): HTMLElement {
  const times = (power: number) => `${short(Number((2 ** power).toPrecision(3)))} times`
  const { high, beyond } = shading
  const most = `${beyond === null ? '' : '≥ '}${times(high)}`
  return scaleOf({
    title: '|B| beside |A|',
    shading,
    ends: [`A ${most} B`, 'equal', `B ${most} A`],
    zero: '0 in one of them',
    isWhole,
    far: beyond === null ? '' : `, up to ${times(beyond.high)}`,
    sizes: 'ratios',
  })
}

/** The legend of shares of elements that are NaN or infinite. */
export function lostLegend(shading: Shading, isWhole: boolean): HTMLElement {
  const title = 'share of elements that are NaN or infinite'
  return scaleOf({ title, shading, ends: ['> 0', '1'], zero: 'none', isWhole, far: '', sizes: '' })
}

interface Scale {
  readonly title: string
  readonly shading: Shading
  readonly ends: readonly string[]
  /** The meaning of grey; null for none. */
  readonly zero: string | null
  readonly isWhole: boolean
  /** The phrase for numbers beyond the ends. */
  readonly far: string
  readonly sizes: string
}

function scaleOf({ title, shading, ends, zero, isWhole, far, sizes }: Scale): HTMLElement {
  const { scheme, beyond, hasLost, hasZero, hasRange } = shading
  return h(
    'p',
    { class: 'scale' },
    h('span', {}, title),
    hasRange
      ? h(
          'span',
          { class: 'ramp' },
          h('i', { style: `background: ${gradientOf(scheme)}` }),
          h('span', {}, ...ends.map(text => h('span', {}, text))),
        )
      : null,
    hasLost ? h('span', {}, chip(NOT_FINITE), term('NaN or ∞', 'Not a number, or infinite.')) : null,
    hasZero && zero !== null ? h('span', {}, chip(ZERO), zero) : null,
    isWhole ? null : h('span', {}, h('i', { class: 'chip empty' }), 'not saved'),
    beyond === null
      ? null
      : h(
          'span',
          { class: 'beyond' },
          `${beyond.count.toLocaleString('en')} of ${beyond.of.toLocaleString('en')} ${sizes} lie beyond the ends${far}`,
        ),
  )
}
