/** Samples as points of a plane, step by step; beside a point the model's input and output. */

import * as Plot from '@observablehq/plot'
import { EMBEDDING_METHODS, type EmbeddingMethod, type EmbeddingView } from '../../../data.js'
import { button, choice, h, term } from '../../dom.js'
import { badge } from '../../names.js'
import { actions, describe, fitting } from '../../pictures/charts.js'
import { LABEL_COLORS, NUMBER_COLORS } from '../../pictures/colors.js'
import { greyImage } from '../../pictures/images.js'
import { fileName, saveGif, videoButton } from '../../pictures/raster.js'
import { stepper } from '../../stepper.js'
import { even, short, shown, thinnedText } from '../../text.js'
import { type ShownTrial, unpack } from '../../trials.js'
import type { View } from '../view.js'

export interface EmbeddingChoice {
  method: EmbeddingMethod
  /** The chosen tensor, if any can be asked for. */
  tensor: string
}

const NAMES: Readonly<Record<EmbeddingMethod, string>> = { tsne: 't-SNE', umap: 'UMAP', pca: 'PCA' }
const MEANINGS: Readonly<Record<EmbeddingMethod, string>> = {
  tsne: 't-SNE: neighbours stay neighbours; distances between clusters say little.',
  umap: 'UMAP: neighbours stay neighbours, and clusters keep some of their distances.',
  pca: 'PCA: the two directions in which samples vary most; distances are true to scale.',
}
const PLAY_MS = 500
const SHOWN_IMAGES = 10

export async function embeddingView(given: readonly ShownTrial[], chosen: EmbeddingChoice): Promise<View> {
  let trials = given
  const parts = h('div', {})
  const status = h('p', { class: 'muted', role: 'status' })
  let turns = 0
  const meaning = h('p', { class: 'muted meaning' })
  const draw = async () => {
    meaning.textContent = MEANINGS[chosen.method]
    const drawn = trials.map(async (trial, i) => {
      const head = trials.length > 1 ? h('h2', {}, badge(i), shown(trial.view.name)) : null
      if (trial.source.embedsAny && chosen.tensor === '')
        return h('article', {}, head, h('p', {}, 'Choose a tensor whose first axis is that of the samples.'))
      try {
        const embedding = await trial.source.embedding(chosen.tensor)
        return embedding === null || embedding.steps.length === 0
          ? h('article', {}, head, h('p', {}, 'There is nothing to show.'))
          : h('article', {}, head, ...(await pictureOf(trial, embedding, chosen.method)))
      } catch (error) {
        return h('article', {}, head, h('p', { class: 'found' }, shown(messageOf(error))))
      }
    })
    // The old picture stays until the new one is ready.
    const turn = ++turns
    status.textContent = 'Points are computed …'
    const elements = await Promise.all(drawn)
    if (turn !== turns) return
    status.textContent = ''
    parts.replaceChildren(...elements)
  }
  const names = trials[0]!.view.tensors
    .filter(({ shape }) => shape !== null && shape.length >= 2 && shape[0]! >= 4)
    .map(({ name }) => name)
  const tensor = h('input', {
    type: 'search',
    list: 'samples',
    value: chosen.tensor,
    onchange: () => {
      chosen.tensor = tensor.value
      void draw()
    },
  })
  const suggested =
    !trials[0]!.source.embedsAny || names.length === 0
      ? null
      : h(
          'p',
          { class: 'actions' },
          'Tensors of samples: ',
          ...[...names]
            .sort((a, b) => suggestionRank(a) - suggestionRank(b))
            .slice(0, MAX_SUGGESTED)
            .map(name =>
              button(shown(name), () => {
                tensor.value = name
                chosen.tensor = name
                void draw()
              }),
            ),
        )
  const element = h(
    'section',
    {},
    h(
      'form',
      { class: 'controls', onsubmit: event => event.preventDefault() },
      trials[0]!.source.embedsAny
        ? h(
            'label',
            { class: 'choice wide' },
            h('span', {}, 'Tensor'),
            tensor,
            h('datalist', { id: 'samples' }, ...names.map(value => h('option', { value }))),
          )
        : null,
      choice(
        'Method',
        EMBEDDING_METHODS.map(method => [method, NAMES[method]] as const),
        chosen.method,
        method => {
          chosen.method = method
          void draw()
        },
      ),
    ),
    suggested,
    meaning,
    status,
    parts,
  )
  await draw()
  const update = async (newer: readonly ShownTrial[]) => {
    trials = newer
    // A running animation goes on.
    if (element.querySelector('.player.on') === null) await draw()
  }
  return { element, update }
}

const MAX_SUGGESTED = 5

/** Bottlenecks and embeddings first, then outputs of layers. */
function suggestionRank(name: string): number {
  return [/bottleneck|latent|embed|encod|code/i, /output/i].findIndex(pattern => pattern.test(name)) >>> 0
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  try {
    return (JSON.parse(text) as { readonly error: { readonly message: string } }).error.message
  } catch {
    return text
  }
}

async function pictureOf(trial: ShownTrial, embedding: EmbeddingView, method: EmbeddingMethod): Promise<HTMLElement[]> {
  const { tensor, labels, steps } = embedding
  const all = [...new Set(steps.flatMap(({ labels }) => labels))].sort((a, b) => a - b)
  const pixels = await Promise.all(
    steps.map(async ({ images, reconstructions }) => ({
      images: images && { ...images, pixels: (await unpack(images.pixels)) as Uint8Array },
      reconstructions: reconstructions && {
        ...reconstructions,
        pixels: (await unpack(reconstructions.pixels)) as Uint8Array,
      },
    })),
  )
  const text = (i: number) => `step ${trial.stepText(steps[i]!.step)}`
  const plot = (i: number, title?: string) =>
    scatter(
      steps[i]!.points[method],
      // Axes cover all steps, so that steps that were placed together can be compared.
      steps.flatMap(({ points }) => points[method]),
      steps[i]!.labels,
      all,
      `${NAMES[method]} of ${shown(tensor)} at ${text(i)}`,
      title,
    )
  const gifName = fileName(`${NAMES[method]} of ${tensor}`)
  const picture = h('div', { class: 'one' })
  const beside = h('div', {
    class: 'pairs',
    role: 'img',
    'aria-label': 'What the model was given, and what it made of it, sample by sample',
  })
  /** The samples with the largest errors, or those from a sample on. */
  const shownSamples = (i: number, from: number | null) => {
    const { images, reconstructions } = pixels[i]!
    const { errors } = steps[i]!
    const count = Math.max(images?.count ?? 0, reconstructions?.count ?? 0)
    const first = Math.max(0, Math.min(from ?? 0, count - SHOWN_IMAGES))
    const all = Array.from({ length: count }, (_, sample) => sample)
    const indices = from === null && errors.length > 0 ? all.sort((a, b) => errors[b]! - errors[a]!) : all.slice(first)
    return indices.slice(0, SHOWN_IMAGES).map(sample => {
      const label = steps[i]!.labels[sample]
      return h(
        'figure',
        { class: sample === from ? 'chosen' : '' },
        greyImage(images, sample),
        greyImage(reconstructions, sample),
        h(
          'figcaption',
          {},
          h('div', {}, `sample ${sample}`),
          label === undefined ? null : h('div', {}, `label ${label}`),
          errors[sample] === undefined ? null : h('div', {}, `error ${even(errors[sample])}`),
        ),
      )
    })
  }
  const show = (i: number) => {
    const svg = plot(i)
    // The pointer moves over a point.
    svg.addEventListener('input', () => {
      const { value } = svg as unknown as { readonly value: { readonly sample: number } | null }
      if (value) beside.replaceChildren(...shownSamples(i, value.sample))
    })
    const rows = () => [
      ['sample', 'x', 'y', 'label'],
      ...steps[i]!.points[method].map(([x, y], sample) => [sample, x, y, steps[i]!.labels[sample] ?? '']),
    ]
    const gif = button('GIF', () => void saveGif(frames(), gifName, PLAY_MS), {
      'aria-label': 'Save the animation as GIF',
    })
    picture.replaceChildren(
      svg as unknown as HTMLElement,
      ...(labels === null ? [] : [legend(labels, all)]),
      actions(
        `the points at ${text(i)}`,
        rows,
        svg,
        steps.length > 1 ? [gif, videoButton(frames, gifName, PLAY_MS)] : [],
      ),
    )
    beside.replaceChildren(...shownSamples(i, null))
  }
  const frames = function* () {
    for (const i of steps.keys()) yield plot(i, text(i))
  }
  const hasPairs = embedding.images !== null || embedding.reconstructions !== null
  return [
    h(
      'p',
      { class: 'muted' },
      `${shown(tensor)}, ${steps[0]!.points.pca.length} samples a step${placedText(steps)}`,
      '.',
      thinnedText(embedding.thinned) === null ? null : ` ${thinnedText(embedding.thinned)}`,
    ),
    stepper({
      steps: steps.map(({ step }) => trial.view.steps[step]!),
      text,
      show,
      first: steps.length - 1,
      ms: PLAY_MS,
    }),
    h(
      'div',
      { class: 'embedding' },
      picture,
      hasPairs
        ? h(
            'div',
            {},
            h(
              'h4',
              {},
              term(
                'Given, and reconstructed',
                `${embedding.images ?? 'nothing'} above, ${embedding.reconstructions ?? 'nothing'} below: each from its own least element (black) to its largest (white). The errors are mean squares; the largest come first. Point at a sample to see its images.`,
              ),
            ),
            beside,
          )
        : null,
    ),
  ]
}

/** A sentence on which points can be compared. */
function placedText(steps: EmbeddingView['steps']): string {
  const most = Math.max(...steps.map(({ pool }) => pool.steps))
  if (most === 1) return ''
  const isAll = steps.every(({ pool }) => pool.steps === steps.length)
  return isAll ? ', those of all steps placed together' : `, those of up to ${most} steps of a mode placed together`
}

/** The colours of labels: of each class or, of numbers, from the smallest to the largest. */
function legend(labels: string, all: readonly number[]): HTMLElement {
  if (all.length <= LABEL_COLORS.length) {
    const classes = all.map((label, i) =>
      h('li', {}, h('i', { class: 'chip', style: `background: ${LABEL_COLORS[i]}` }), short(label)),
    )
    return h('ul', { class: 'legend' }, h('li', {}, shown(labels)), ...classes)
  }
  const ramp = h('i', { style: `background: linear-gradient(to right, ${NUMBER_COLORS.join(', ')})` })
  const ends = [all[0]!, all.at(-1)!].map(label => h('span', {}, short(label)))
  return h('p', { class: 'scale' }, shown(labels), h('span', { class: 'ramp' }, ramp, h('span', {}, ...ends)))
}

function domainOf(numbers: readonly number[]): readonly [number, number] {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)]
  return low < high ? [low, high] : [low - 1, high + 1]
}

/** A scatter plot. @param beside further points that the axes make room for */
function scatter(
  points: readonly (readonly [number, number])[],
  beside: readonly (readonly [number, number])[],
  labels: readonly number[],
  all: readonly number[],
  label: string,
  title?: string,
): SVGElement {
  const samples = points.map(([x, y], sample) => ({ x, y, sample, label: labels[sample] ?? 0 }))
  const isClasses = all.length <= LABEL_COLORS.length
  const width = fitting(800)
  const svg = Plot.plot({
    width,
    height: Math.min(520, width),
    style: { background: 'transparent', fontFamily: 'inherit', fontSize: '12px' },
    x: { axis: null, inset: 16, domain: domainOf(beside.map(([x]) => x)) },
    y: { axis: null, inset: 16, domain: domainOf(beside.map(([, y]) => y)) },
    color: isClasses
      ? { type: 'ordinal', domain: [...all], range: LABEL_COLORS }
      : {
          type: 'linear',
          domain: [0, 1, 2, 3].map(i => all[0]! + (i / 3) * (all.at(-1)! - all[0]!)),
          range: NUMBER_COLORS,
        },
    marks: [
      Plot.frame({ strokeOpacity: 0.2 }),
      Plot.dot(samples, {
        x: 'x',
        y: 'y',
        fill: all.length > 0 ? 'label' : 'currentColor',
        r: 4.5,
        stroke: 'white',
        strokeWidth: 0.5,
      }),
      // Labels are also written out, because not everybody can tell colours apart.
      ...(all.length > 0 && isClasses && points.length <= 200
        ? [Plot.text(samples, { x: 'x', y: 'y', text: 'label', dy: -9, fontSize: 10, fill: 'currentColor' })]
        : []),
      Plot.tip(
        samples,
        Plot.pointer({
          x: 'x',
          y: 'y',
          title: ({ sample, label }: { sample: number; label: number }) =>
            all.length > 0 ? `sample ${sample}, label ${label}` : `sample ${sample}`,
        }),
      ),
      ...(title === undefined ? [] : [Plot.text([title], { frameAnchor: 'top-left', dx: 8, dy: 8, fontSize: 14 })]),
    ],
  })
  describe(svg, `${label}: ${points.length} points${all.length > 0 ? ` of ${all.length} labels` : ''}.`)
  return svg as SVGElement
}
