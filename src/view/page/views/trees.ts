/** The shape of XGBoost's trees: which features are split at, and how deep. */

import * as Plot from '@observablehq/plot'
import type { TreeNode } from '../../data.js'
import { h } from '../dom.js'
import { actions, describe, fitting, halfWidth, lineChart, STYLE } from '../pictures/charts.js'
import { lineColor } from '../pictures/colors.js'
import { stepper } from '../stepper.js'
import { counted, even, shortened, shown } from '../text.js'
import type { ShownTrial } from '../trials.js'

/** The width that the text of a leaf takes; where there is less, there is none. */
const TEXT_WIDTH = 64
const LEVEL = 56
/** Texts with a halo, so that no line crosses them. */
const HALO = { stroke: 'var(--card)', strokeWidth: 6, fill: 'currentColor' }

interface Placed extends TreeNode {
  readonly x: number
  readonly depth: number
}

/** Places leaves side by side, and each other node above the middle of those below it. */
export function placed(nodes: readonly TreeNode[]): readonly Placed[] {
  const all = new Map<number, Placed>()
  let leaves = 0
  const place = (i: number, depth: number): number => {
    const node = nodes[i]!
    // A node is placed once, whatever a damaged table says.
    all.set(i, { ...node, x: 0, depth })
    const below = [node.yes, node.no].flatMap(at => (at >= 0 && !all.has(at) ? [place(at, depth + 1)] : []))
    const x = below.length === 0 ? leaves++ : below.reduce((sum, x) => sum + x, 0) / below.length
    all.set(i, { ...node, x, depth })
    return x
  }
  const children = new Set(nodes.flatMap(({ yes, no }) => [yes, no]))
  for (const i of nodes.keys()) if (!children.has(i)) place(i, 0)
  // What is left are circles.
  for (const i of nodes.keys()) if (!all.has(i)) place(i, 0)
  return [...all].sort(([a], [b]) => a - b).map(([, node]) => node)
}

function textOf({ feature, split, gain, cover }: TreeNode): string {
  const what =
    feature === null || split === null
      ? `adds ${even(gain)} to the prediction`
      : `${shown(feature)} < ${even(split)}? yes: left, no: right\ngain ${even(gain)}`
  return `${what}\ncover ${even(cover)}`
}

/** The trees, a step at a time, and the chart of their depth; none of a trial without trees. */
export async function treesParts(
  trial: ShownTrial,
): Promise<{ readonly tree?: HTMLElement; readonly depth?: HTMLElement }> {
  const trees = await trial.source.trees()
  if (trees.length === 0) return {}
  const all = trees.map(({ nodes }) => placed(nodes))
  const depths = all.map(nodes => Math.max(0, ...nodes.map(({ depth }) => depth)))
  const picture = h('div', {})
  const text = (i: number) => `step ${trial.stepText(trees[i]!.step)}`
  const show = (i: number) => {
    const { nodes } = trees[i]!
    const label = `The tree at ${text(i)}: ${counted(nodes.filter(({ feature }) => feature === null).length, 'leaf', 'leaves')}, ${depths[i]} deep.`
    const svg = plot(all[i]!, depths[i]!, Math.max(...depths))
    describe(svg, label)
    const rows = () => [
      ['node', 'depth', 'feature', 'split', 'yes', 'no', 'gain', 'cover'],
      ...all[i]!.map(({ depth, feature, split, yes, no, gain, cover }, node) => [
        ...[node, depth, feature ?? 'Leaf', split ?? '', yes, no, gain, cover],
      ]),
    ]
    picture.replaceChildren(h('p', { class: 'note' }, label), svg, actions(label, rows, svg))
  }
  const points = trees.map(({ step }, i) => ({ x: trial.view.steps[step]!, y: depths[i]! }))
  const tree = h(
    'div',
    { class: 'card trees' },
    h('h4', {}, 'The shape of the trees'),
    h(
      'p',
      { class: 'muted' },
      'Samples below a limit go left, all others right; a leaf adds its number to the prediction.',
    ),
    stepper({ steps: trees.map(({ step }) => trial.view.steps[step]!), text, show, first: trees.length - 1 }),
    picture,
  )
  if (trees.length === 1) return { tree }
  const depth = lineChart({
    label: 'The depth of the tree of each step',
    lines: [{ name: 'depth', color: lineColor(0), points }],
    width: halfWidth(),
    height: 170,
    fromZero: true,
  })
  return { tree, depth: h('div', { class: 'card' }, h('h4', {}, 'The depth of the trees'), depth) }
}

/** @param most the largest depth of all trees, whose pictures have one height */
function plot(nodes: readonly Placed[], depth: number, most: number): SVGElement {
  const width = fitting(2200)
  const leaves = 1 + Math.max(...nodes.map(({ x }) => x))
  const room = width / leaves
  const links = nodes.flatMap(node =>
    (['yes', 'no'] as const).flatMap(answer =>
      node[answer] < 0 ? [] : [{ answer, from: node, to: nodes[node[answer]]! }],
    ),
  )
  return Plot.plot({
    width,
    height: 50 + LEVEL * most,
    margin: 24,
    style: STYLE,
    x: { axis: null, domain: [-0.5, leaves - 0.5] },
    y: { axis: null, domain: [Math.max(1, depth), 0] },
    marks: [
      Plot.link(links, {
        x1: ({ from }) => from.x,
        y1: ({ from }) => from.depth,
        x2: ({ to }) => to.x,
        y2: ({ to }) => to.depth,
        stroke: 'currentColor',
        strokeOpacity: 0.35,
      }),
      Plot.dot(nodes, {
        x: 'x',
        y: 'depth',
        r: 4,
        fill: ({ feature }: Placed) => (feature === null ? 'var(--line-2)' : 'var(--line-0)'),
      }),
      ...(room < TEXT_WIDTH
        ? []
        : [
            Plot.text(links, {
              x: ({ from, to }) => (from.x + to.x) / 2,
              y: ({ from, to }) => (from.depth + to.depth) / 2,
              ...{ text: 'answer', ...HALO, fillOpacity: 0.75 },
            }),
            Plot.text(
              nodes.filter(({ feature }) => feature === null),
              { x: 'x', y: 'depth', dy: 14, ...HALO, text: ({ gain }: Placed) => even(gain) },
            ),
            Plot.text(
              nodes.filter(({ feature }) => feature !== null),
              {
                ...{ x: 'x', y: 'depth', dy: -13, ...HALO },
                text: ({ feature, split }: Placed) => `${shortened(feature!, 16)} < ${even(split!)}`,
              },
            ),
          ]),
      Plot.tip(nodes, Plot.pointer({ x: 'x', y: 'depth', title: textOf })),
    ],
  }) as SVGElement
}
