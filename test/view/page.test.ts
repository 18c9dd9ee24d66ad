/** Reports in a browser: every view of each golden trial and of a hostile one, by pointer and by keyboard. */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTrial, diff, reportHtml, type Trial, trialOverview, VanishingGradient } from '#dist/index.js'
import type { TrialView } from '#dist/view/data.js'
import { remarks } from '#dist/view/overview/remarks.js'
import { executionOrder } from '#dist/view/page/order.js'
import { lostShading } from '#dist/view/page/pictures/shading.js'
import { even, exact, labelsOf, short, told } from '#dist/view/page/text.js'
import { TrialWriter } from '../../fixtures/event-writer.js'
import { type Browser, hasChromium, launch, type Page } from '../support/chromium.js'
import { isRequired, ROOT, sharedTrials } from '../support/golden.js'
import { scratchDirectory } from '../support/scratch.js'
import { writeHostile, writeHostileCheckpoint } from './hostile.js'
import { writeSamples } from './samples.js'

const TRIALS = join(ROOT, 'fixtures/trials')
const VIEWS = ['overview', 'layers', 'tensor'] as const
const TABS = {
  overview: 'Overview',
  layers: 'Layers × steps',
  kinds: 'Layers × kinds',
  distributions: 'Distributions',
  tensor: 'Tensors',
  units: 'Units',
  classes: 'Classes',
  boosting: 'Features',
  embedding: 'Embedding',
} as const
/** Those of the project, and the golden ones where they are. */
const PLACES = [
  ...readdirSync(TRIALS).map(name => join(TRIALS, name)),
  ...sharedTrials().flatMap(({ name, directory }) => (readdirSync(TRIALS).includes(name) ? [] : [directory])),
]
const scratch = scratchDirectory('page')
let browser: Browser
let page: Page
/** What went wrong in the page, and what it asked of any network. */
let wrong: string[]

beforeAll(async () => {
  if (!hasChromium && !isRequired('chromium')) return
  browser = await launch()
  page = await browser.newPage()
  page.on('console', message => wrong.push(`console: ${message.text()}`))
  page.on('pageerror', error => wrong.push(`error: ${error.message}`))
  page.on('request', request => {
    if (!/^(file|blob|data):/.test(request.url())) wrong.push(`request: ${request.url()}`)
  })
})

afterAll(() => browser?.close())

async function write(
  ...paths: readonly string[]
): Promise<{ readonly url: string; readonly trials: readonly Trial[] }> {
  const trials: Trial[] = []
  for (const path of paths) trials.push(await createTrial(path, { requireCollections: false, refresh: 'manual' }))
  const file = join(scratch, `${trials.map(({ name }) => name).join('-')}.html`)
  writeFileSync(file, (await reportHtml(trials)).html)
  return { url: pathToFileURL(file).href, trials }
}

async function open(url: string, view: string): Promise<void> {
  wrong = []
  await page.goto('about:blank')
  await page.goto(`${url}#${view}`)
  await page.waitForSelector('#report:not([aria-busy])')
}

/** A checkpoint of tensors of two elements. */
function writeWeights(directory: string, names: readonly string[], elementOf: (i: number) => number): void {
  const entries = names.map((name, i) => [name, { dtype: 'F32', shape: [2], data_offsets: [8 * i, 8 * i + 8] }])
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)))
  const length = Buffer.alloc(8)
  length.writeUInt32LE(header.length)
  const elements = Buffer.from(Float32Array.from({ length: 2 * names.length }, (_, i) => elementOf(i)).buffer)
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'model.safetensors'), Buffer.concat([length, header, elements]))
}

/** The text of each cell of the first map, by its place: read by keyboard. */
async function cellsOf(rows: number, columns: number): Promise<Map<string, string>> {
  const cells = new Map<string, string>()
  await page.locator('#view canvas').first().focus()
  await page.keyboard.press('ArrowRight')
  for (let i = 0; i < rows; i++) await page.keyboard.press('ArrowUp')
  for (let row = 0; row < rows; row++) {
    await page.keyboard.press('Home')
    for (let column = 0; column < columns; column++) {
      const [cell, value] = (await page.textContent('#view .readout'))!.split(': ') as [string, string]
      cells.set(cell, value)
      await page.keyboard.press('ArrowRight')
    }
    await page.keyboard.press('ArrowDown')
  }
  return cells
}

const numberOf = (text: string) => Number(text.replaceAll('−', '-'))

/** The rows that a picture copies. */
async function copied(within: string): Promise<string[]> {
  await page.evaluate(`navigator.clipboard.writeText = text => { globalThis.copied = text; return Promise.resolve() }`)
  await page.locator(`${within} .actions button`).first().click()
  return String(await page.evaluate('copied'))
    .trim()
    .split('\n')
}

interface AxNode {
  readonly nodeId: string
  readonly parentId?: string
  readonly ignored: boolean
  readonly role?: { readonly value: string }
  readonly name?: { readonly value: string }
}

/** The names of the headings of rows and columns that screen readers are told in a table. @param name what the table's name begins with */
async function headersOf(name: string): Promise<string[]> {
  const session = await page.context().newCDPSession(page)
  const { nodes } = (await session.send('Accessibility.getFullAXTree')) as { readonly nodes: readonly AxNode[] }
  const byId = new Map(nodes.map(node => [node.nodeId, node]))
  const isIn = (node: AxNode | undefined): boolean =>
    node !== undefined &&
    ((node.role?.value === 'table' && node.name!.value.startsWith(name)) || isIn(byId.get(node.parentId ?? '')))
  return nodes
    .filter(node => !node.ignored && /^(row|column)header$/.test(node.role!.value) && isIn(node))
    .map(node => node.name!.value)
}

/** The number of elements that do not lie in the window, or whose text is wider than they are. */
const CUT = (selector: string) =>
  `[...document.querySelectorAll('${selector}')].filter(one => one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > innerWidth).length`

/** Pictures with a tooltip. */
const PICTURES = '#view svg:has([aria-label=tip])'
/** The place of a picture's corner in the window, or of its dot that is the nearest to it. */
const cornerOf = (i: number, corner: number) => `(() => {
  const picture = document.querySelectorAll('${PICTURES}')[${i}]
  picture.scrollIntoView({ block: 'center' })
  const [toX, toY] = [${corner % 2 === 0 ? -1 : 1}, ${corner < 2 ? -1 : 1}]
  const { left, top, width, height } = picture.getBoundingClientRect()
  const dots = [...picture.querySelectorAll('circle')].map(dot => dot.getBoundingClientRect())
  const places = dots.map(dot => [dot.left + dot.width / 2, dot.top + dot.height / 2])
  const corner = [left + width / 2 + toX * (width / 2 - 4), top + height / 2 + toY * (height / 2 - 4)]
  return places.reduce((a, b) => (toX * (b[0] - a[0]) + toY * (b[1] - a[1]) > 0 ? b : a), places[0] ?? corner)
})()`
/** The pixels by which tooltips lie outside of the window, or of the picture if that cuts them. */
const cutTips = (i: number) => `new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => {
  const picture = document.querySelectorAll('${PICTURES}')[${i}]
  const { clientWidth: right, clientHeight: bottom } = document.documentElement
  const isOpen = getComputedStyle(picture).overflow === 'visible'
  const frame = isOpen ? { left: 0, top: 0, right, bottom } : picture.getBoundingClientRect()
  const tips = [...picture.querySelectorAll('[aria-label=tip] path')].map(tip => tip.getBoundingClientRect())
  resolve(tips.map(tip => Math.max(frame.left - tip.left, frame.top - tip.top, tip.right - frame.right, tip.bottom - frame.bottom)))
})))`
/** The contrast of each text or area with what is behind it. */
const contrastsOf = (selector: string) => `(() => {
  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true })
  const paint = color => {
    context.fillStyle = color
    context.fillRect(0, 0, 1, 1)
    return [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
      const part = context.getImageData(0, 0, 1, 1).data[i] / 255
      return sum + weight * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    }, 0.05)
  }
  return [...document.querySelectorAll('${selector}')].filter(one => one.checkVisibility() && (one.textContent !== '' || /^(path|circle)$/.test(one.tagName)) && !one.disabled).map(one => {
    const grounds = []
    for (let at = one; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor)
    const ground = grounds.map(paint).at(-1)
    const text = paint(getComputedStyle(one)[one instanceof SVGElement ? 'fill' : 'color'])
    return Math.max(ground, text) / Math.min(ground, text)
  })
})()`

/** The layers of `mlp-vanishing` in the order of execution, and those of some tensors. */
const LAYERS = ['inp', ...Array.from({ length: 8 }, (_, i) => `hidden.${i}`), 'out']
const layersAmong = (names: Iterable<string>) => [
  ...new Set(Array.from(names, name => name.replace(/^.*DeepSigmoid_|\.\w+$/g, ''))),
]

const close = (trials: readonly Trial[]) => Promise.all(trials.map(trial => trial.close()))

describe.runIf(hasChromium || isRequired('chromium'))('a page', () => {
  it.each(PLACES)('of %s shows every view, and nothing goes wrong', async path => {
    const { url, trials } = await write(path)
    await open(url, 'overview')
    const tabs = await page.locator('nav a').allTextContents()
    const views = Object.entries(TABS).filter(([, text]) => tabs.includes(text))
    expect(views.length).toBe(tabs.length)
    for (const [view, text] of views) {
      await open(url, view)
      expect(wrong, view).toEqual([])
      expect(await page.textContent('nav a[aria-current]')).toBe(text)
      // Each picture is told to those who don't see it.
      const pictures = await page
        .locator('#view figure > svg, #view figure div > svg, #view [role=img], #view canvas[tabindex]')
        .all()
      for (const picture of pictures) expect((await picture.getAttribute('aria-label'))!.length).toBeGreaterThan(10)
      expect(await page.locator('#view canvas:not([tabindex]):not([role=img] canvas)').count()).toBe(0)
      if (view === 'layers') expect(await page.locator('#view canvas').count()).toBeGreaterThan(0)
    }
    await close(trials)
  })

  it('has a map of layers and kinds of a checkpoint, with the numbers of a scan', async () => {
    const { url, trials } = await write(join(ROOT, 'fixtures/checkpoints/run'))
    await open(url, 'kinds')
    const expected = new Map<string, number>()
    for await (const { tensor, step, reductions } of trials[0]!.scan({ steps: -1, reductions: ['l2'] })) {
      const [, layer, kind] = /^(model\.layers\.\d+)\.(.+)\.weight$/.exec(tensor!) ?? []
      if (layer !== undefined) expected.set(`${layer} · ${kind} · step ${step}`, reductions.l2 as number)
    }
    expect(await cellsOf(2, 4)).toEqual(new Map([...expected].map(([cell, l2]) => [cell, `l2 ${l2}`])))
    expect([...expected.values()].filter(l2 => !Number.isFinite(l2))).toHaveLength(1)
    expect(await page.textContent('#view .note')).toContain('model.embed_tokens.weight')
    await page.selectOption('#view label:nth-of-type(2) select', '10')
    const redrawn = async () => [...(await cellsOf(2, 4)).keys()][0]
    await expect.poll(redrawn, { timeout: 60_000 }).toContain('step 10')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has a map of what changed between two checkpoints', async () => {
    const at = (name: string) => join(ROOT, 'fixtures/checkpoints', name)
    const { url, trials } = await write(at('base'), at('tuned'))
    await open(url, 'kinds')
    const changed: string[] = []
    const norms = new Map<string, string>()
    const shares = new Map<string, string>()
    await diff(trials[0]!, trials[1]!, {
      onDifference: ({ tensor, difference }) => {
        changed.push(tensor)
        const cell = tensor.replace(/^(model\.layers\.\d+)\.(.+)\.weight$/, '$1 · $2 · step 0')
        norms.set(cell, `difference ${exact(difference!.relativeNorm!)}`)
        shares.set(cell, `changed ${exact(difference!.unequalCount / difference!.count)}`)
      },
    })
    expect(await page.locator('#view .note .outside:has(.chip):has(a)').allTextContents()).toContain('lm_head.weight 0')
    const cells = await cellsOf(2, 4)
    const apart = ([, text]: readonly [string, string]) => !text.endsWith(' 0')
    expect(new Map([...cells].filter(apart))).toEqual(norms)
    await page.selectOption('#view select', 'changed')
    const redrawn = async () => new Map([...(await cellsOf(2, 4))].filter(apart))
    await expect.poll(redrawn, { timeout: 60_000 }).toEqual(shares)
    await open(url, 'overview')
    expect(await page.locator('.changed td').count()).toBe(changed.length)
    expect(await page.textContent('div:has(> .changed) > p')).toBe(`Unchanged: ${11 - changed.length} tensors.`)
    await open(url, 'layers')
    expect(await page.locator('figcaption').allTextContents()).toEqual(['ABHow far they are apart'])
    await open(url, 'tensor')
    expect(await page.inputValue('.controls label:has-text("Show") select')).toBe('l2')
    const shown = [...cells].filter(([, text]) => text !== 'difference 0').map(([cell]) => cell)
    const inLayers = changed.filter(tensor => tensor.includes('.layers.'))
    expect(cells.size).toBe(8)
    expect(shown.map(cell => `${cell.split(' · ').slice(0, 2).join('.')}.weight`).sort()).toEqual(inLayers.sort())
    await close(trials)
  })

  it('of a run of checkpoints begins with the norms of weights, and has the updates between two of them', async () => {
    const { url, trials } = await write(join(ROOT, 'fixtures/checkpoints/run'))
    const trial = trials[0]!
    await open(url, 'layers')
    const steps = trial.tensor('lm_head.weight').steps()
    const names = [...trial.collection('weights').members]
    const cellOf = (tensor: string, step: number) => `${tensor} · step ${step}`
    const norms = new Map<string, string>()
    for await (const { tensor, step, reductions } of trial.scan({ tensors: names, reductions: ['l2'] })) {
      norms.set(cellOf(tensor!, step), `l2 ${exact(reductions.l2 as number)}`)
    }
    expect(norms.size).toBe(names.length * steps.length)
    expect(await cellsOf(names.length, steps.length)).toEqual(norms)
    const ratios = new Map<string, number>()
    for (const name of names) {
      const values = await Promise.all(
        steps.map(async step => Array.from((await trial.tensor(name).value(step)).data, Number)),
      )
      for (let i = 1; i < steps.length; i++) {
        const change = Math.hypot(...values[i]!.map((x, k) => x - values[i - 1]![k]!))
        ratios.set(cellOf(name, steps[i]!), change / Math.hypot(...values[i - 1]!))
      }
    }
    await page.selectOption('#view label:nth-of-type(2) select', 'update_ratio')
    await expect.poll(() => page.textContent('#view .meaning')).toContain('‖W − W₀‖ / ‖W₀‖')
    const shown = await cellsOf(names.length, steps.length - 1)
    expect(shown.size).toBe(ratios.size)
    for (const [cell, text] of shown) {
      const [ratio, expected] = [numberOf(text.replace('update_ratio ', '')), ratios.get(cell)!]
      if (Number.isNaN(expected)) expect(ratio, cell).toBeNaN()
      else expect(ratio / expected, cell).toBeCloseTo(1, 9)
    }
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('of the 723 tensors of a large model takes one picture and few elements', async () => {
    const kinds = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj', 'norm_1', 'norm_2']
    const inLayers = Array.from({ length: 80 }, (_, i) => kinds.map(kind => `model.layers.${i}.${kind}.weight`))
    const names = ['model.embed_tokens.weight', ...inLayers.flat(), 'model.norm.weight', 'lm_head.weight']
    expect(names).toHaveLength(723)
    writeWeights(join(scratch, 'large'), names, i => i)
    const { url, trials } = await write(join(scratch, 'large'))
    await open(url, 'kinds')
    expect([await page.locator('#view canvas').count(), wrong]).toEqual([1, []])
    expect(await page.locator('#view *').count()).toBeLessThan(200)
    const cells = await cellsOf(80, 9)
    expect(cells.size).toBe(720)
    expect([...cells.keys()].at(-1)).toContain('model.layers.79')
    await close(trials)
  })

  describe('of checkpoints', () => {
    const kinds = ['self_attn.q_proj', 'self_attn.k_proj', 'mlp.up_proj']
    const inLayers = [0, 1].flatMap(i => kinds.map(kind => `model.layers.${i}.${kind}.weight`))
    const names = [...inLayers, 'lm_head.weight']
    /** A run whose last step is NaN. */
    function writeRun(name: string, steps: readonly number[]): string {
      const directory = join(scratch, name)
      for (const step of steps) {
        const elementOf = (i: number) => (step === steps.at(-1) ? Number.NaN : step + i)
        writeWeights(join(directory, `checkpoint-${step}`), names, elementOf)
      }
      return directory
    }

    it('that end in NaN opens at the last finite step, and draws NaN as NaN', async () => {
      const { url, trials } = await write(writeRun('ends-in-nan', [1, 2, 3]))
      await open(url, 'overview')
      expect(await page.textContent('.flow output')).toBe('step 2')
      expect(await page.textContent('.flow .note')).toBe('From step 3 on, all are NaN, infinite or 0.')
      const texts = (await page.locator('.flow svg text').allTextContents()).join(' ')
      expect(texts).toContain('‖W − W₀‖ / ‖W₀‖ m.l.0.mlp.up_proj m.l.0.s.k_proj m.l.0.s.q_proj m.l.1')
      await page.fill('.flow input[type=range]', '1')
      expect(await page.locator('.flow svg [aria-label=dot][stroke="#d60093"] path').count()).toBe(names.length)
      expect(await page.textContent('.flow .note')).toContain('7 of 7 are NaN or infinite')
      expect(await page.textContent('.nan-path .scale')).toBe('share of elements that are NaN or infinite> 01none')
      await open(url, 'kinds')
      expect(await page.inputValue('.controls label:nth-of-type(2) select')).toBe('2')
      expect(await page.textContent('#view .scale')).toMatch(/^l2, logarithmic[\d.]+$/)
      await page.selectOption('.controls label:nth-of-type(2) select', '3')
      const legend = () => page.textContent('#view .scale')
      await expect.poll(legend, { timeout: 60_000 }).toBe('l2: nothing butNaN or ∞')
      await open(url, `tensor=${names[0]}`)
      expect(await page.textContent('.distribution output')).toBe('step 2')
      expect(await page.textContent('.distribution .note')).toBe('From step 3 on, all are NaN or infinite.')
      await open(url, 'distributions')
      expect(await page.textContent('.player output')).toBe('step 2')
      expect(await page.textContent('#view .note')).toContain('tensor. From step 3 on, all are NaN or infinite.')
      await page.fill('.player input', '2')
      expect(new Set(await page.locator('.panel > p').allTextContents())).toEqual(new Set(['all NaN']))
      expect(
        new Set(
          (await page.evaluate(
            `[...document.querySelectorAll('.panel path')].map(path => path.getAttribute('d'))`,
          )) as string[],
        ),
      ).toEqual(new Set(['']))
      expect(wrong).toEqual([])
      await close(trials)
    })

    it('of two runs tells which ends in NaN', async () => {
      const directory = join(scratch, 'stays-finite')
      for (const step of [1, 2]) writeWeights(join(directory, `checkpoint-${step}`), names, i => step + i)
      const { url, trials } = await write(directory, writeRun('ends-lost', [1, 2, 5, 9]))
      await open(url, 'overview')
      expect(await page.textContent('.flow .note')).toBe('From step 9 on, all of B are NaN, infinite or 0.')
      await open(url, 'distributions?kind=weights')
      expect(await page.textContent('#view .note')).toMatch(/From step 9 on, all of B are NaN or infinite\.$/)
      expect(wrong).toEqual([])
      await close(trials)
    })

    it('of two runs tells the step of each', async () => {
      const { url, trials } = await write(writeRun('run-a', [1, 2, 9]), writeRun('run-b', [1, 3, 9]))
      await open(url, 'overview')
      expect(await page.locator('.flow .legend li').allTextContents()).toEqual(['A run-a, step 2', 'B run-b, step 3'])
      const rows = (await copied('.flow')).slice(1).map(row => row.split(',').slice(0, 2).join(' '))
      expect(new Set(rows)).toEqual(new Set(['run-a 2', 'run-b 3']))
      const headings = await page.locator('#view h2').allTextContents()
      expect(headings.filter(text => /^[AB](run|De)/.test(text))).toEqual(['Arun-a', 'Brun-b', 'ADetails', 'BDetails'])
      expect(await page.textContent('.unmatched')).toBe(
        'Names in A and in B7 names are in both.No loss was saved: there are no scores.',
      )
      await close(trials)
    })
  })

  it('has gradients in the order of layers, and of the parameters of a layer', () => {
    const names = ['fc1_input_0', 'fc2_input_0', 'Net_fc1.weight', 'Net_fc1.bias', 'Net_fc2.weight', 'Net_fc2.bias']
    const gradients = ['fc2.bias', 'fc2.weight', 'fc1.bias', 'fc1.weight'].map(name => `gradient/Net_${name}`)
    const orderOf = (all: readonly string[], checkpoint: string | null) => {
      const kindOf = (name: string) => (name.startsWith('gradient') ? 'gradients' : 'other')
      const tensors = all.map(name => ({ name, kind: kindOf(name), dtype: null, shape: null }) as const)
      const view = { tensors, checkpoint } as unknown as TrialView
      return executionOrder(view, new Map(all.map((name, i) => [name, i]))).map(i => all[i])
    }
    expect(orderOf([...gradients, ...names], null).slice(0, 4)).toEqual(
      ['fc1.weight', 'fc1.bias', 'fc2.weight', 'fc2.bias'].map(name => `gradient/Net_${name}`),
    )
    expect(orderOf(gradients, null)).toEqual([...gradients].reverse())
    expect(orderOf(gradients, 'model')).toEqual(gradients)
  })

  it('has numbers of six digits, and minus signs for hyphens', () => {
    expect([1234567, -1.2345678, 0.00001234567, 0.99999999, -0].map(short)).toEqual([
      '1.23457e6',
      '−1.23457',
      '1.23457e−5',
      '1',
      '0',
    ])
    expect(exact(-1.25e-9)).toBe('−1.25e−9')
    expect(told('the mean of block-1.w2 is -3.5e-9, below -1 (-2), above 1e+9')).toBe(
      'the mean of block-1.w2 is −3.5e−9, below −1 (−2), above 1e9',
    )
  })

  it('has names in little room that tell tensors apart', () => {
    expect(labelsOf(['a.weight', 'b.weight'], 20)).toEqual(['a.weight', 'b.weight'])
    expect(labelsOf(['gradient/net.0.weight', 'gradient/net.1.weight'], 12)).toEqual(['0.weight', '1.weight'])
    expect(labelsOf(['gradient/w · worker_0', 'gradient/w · worker_1'], 20)).toEqual(['w · worker_0', 'w · worker_1'])
    const deep = [
      'model.layers.10.self_attn.q_proj.weight',
      'model.layers.11.self_attn.q_proj.weight',
      'lm_head.weight',
    ]
    expect(labelsOf(deep, 20)).toEqual(['m.l.10.s.q_proj', 'm.l.11.s.q_proj', 'lm_head'])
    expect(labelsOf(['network.layer4.convolution.kernel', 'input'], 20)).toEqual(['n.l4.c.kernel', 'input'])
    // No two are the same, however much that takes.
    const alike = ['beginning_one_and_the_end', 'beginning_two_and_the_end'].map(name => `some.${name}`)
    expect(labelsOf([...alike, 'x'], 15)).toEqual([...alike, 'x'])
  })

  it('has a grey verdict until all steps are judged', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    const html = readFileSync(fileURLToPath(url), 'utf8')
    const [, json] = /<script id="data" type="application\/json">(.*?)<\/script>/s.exec(html)!
    const data = JSON.parse(json!)
    const verdict = async (judged: object, rules: readonly string[], problems: readonly string[] = [], more = {}) => {
      Object.assign(data.trials[0], { findings: [], findingCount: 0, judged, rules, problems, ...more })
      const file = join(scratch, 'judged.html')
      writeFileSync(
        file,
        html.replace(json!, () => JSON.stringify(data)),
      )
      await open(pathToFileURL(file).href, 'overview')
      return [await page.getAttribute('.verdict', 'class'), await page.textContent('.verdict')]
    }
    const rules = data.trials[0].rules
    expect(await verdict({ state: 'waiting', steps: 0 }, [])).toEqual([
      'verdict',
      'Not judged yet: the rules have not begun.',
    ])
    expect(await verdict({ state: 'judging', steps: 3 }, rules)).toEqual([
      'verdict',
      `Not judged yet: ${rules.length} rules have judged 3 of 15 steps, and none has fired so far.`,
    ])
    expect(await verdict({ state: 'done', steps: 15 }, rules)).toEqual([
      'verdict good',
      `Nothing was found: ${rules.length} rules judged 15 steps, and none fired.`,
    ])
    expect(await verdict({ state: 'done', steps: 15 }, rules, ['a file is gone'])).toEqual([
      'verdict',
      `Nothing was found in what could be read: ${rules.length} rules judged 15 steps, and none fired.`,
    ])
    // Causes of one step are counted where a narrow chart has no room for their names.
    const cause = { step: 1, tensor: null, worker: null, message: 'found', cause: null }
    const findings = ['ExplodingTensor', 'WeightUpdateRatio', 'DeadRelu'].map(rule => ({ ...cause, rule }))
    for (const [width, text] of [
      [1280, 'ExplodingTensor, WeightUpdateRatio, DeadRelu'],
      [390, 'ExplodingTensor and 2 more'],
    ] as const) {
      await page.setViewportSize({ width, height: 720 })
      await verdict({ state: 'done', steps: 15 }, rules, [], { findings })
      expect(await page.locator('.curve svg text').allTextContents()).toContain(text)
    }
    await page.setViewportSize({ width: 1280, height: 720 })
    expect(wrong).toEqual([])
    await close(trials)
  })

  describe('begins with an overview that', () => {
    function writeLosses(name: string, losses: readonly number[]): string {
      const directory = join(scratch, name)
      const writer = new TrialWriter(directory)
      for (const [step, loss] of losses.entries()) {
        writer.step({ step, tensors: [{ name: 'loss', dtype: 'float64', shape: [], values: [loss] }] })
      }
      writer.end()
      return directory
    }
    it('tells what the summary tells, and what to do as check does', async () => {
      const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
      await open(url, 'overview')
      const said = await page.locator('.said li').allTextContents()
      const { losses, gradients, updates, fromZero } = await trialOverview(trials[0]!)
      expect(said).toEqual(remarks({ losses, gradients, updates, fromZero }))
      expect(said.at(-1)).toBe(
        'gradient/DeepSigmoid_out.bias gets 41,000,000 times the gradient that gradient/DeepSigmoid_inp.weight gets.',
      )
      expect(await page.locator('.advice p').allTextContents()).toEqual([
        `${VanishingGradient.meaning} What to do: ${VanishingGradient.advice}`,
      ])
      // A message beside a tensor's name does without it.
      const messages = await page.locator('tr:has-text("VanishingGradient") td:last-child .muted').allTextContents()
      expect(messages.length).toBeGreaterThan(1)
      for (const message of messages) expect(message).toMatch(/^the mean of the absolute values is \d\S*, below 1e−7$/)
      // Facts are folded away.
      expect(await page.locator('.facts').isVisible()).toBe(false)
      expect(wrong).toEqual([])
      await close(trials)
    })

    it('has the size of each gradient at a step, in the order of execution, as a scan has it', async () => {
      const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
      await open(url, 'overview')
      await page.fill('.flow input[type=range]', '2')
      expect(await page.textContent('.flow output')).toBe('step 20 (TRAIN 20)')
      expect(await page.textContent('.flow .note')).toBe(
        'VanishingGradient fires below 1e−7, and below 0.001 of the largest.',
      )
      expect(await page.textContent('.flow svg')).toContain('VanishingGradient: below 1e−7')
      const rows = await copied('.flow')
      const expected = new Map<string, string>()
      for await (const { tensor, reductions } of trials[0]!.scan({ collection: 'gradients', steps: 20 }))
        expected.set(tensor!, String(reductions.abs_mean))
      expect(rows[0]).toBe('trial,step,tensor,abs_mean,least worker,greatest worker')
      const cells = rows.slice(1).map(row => row.split(','))
      expect(new Map(cells.map(([, , tensor, mean]) => [tensor, mean]))).toEqual(expected)
      expect(layersAmong(cells.map(([, , tensor]) => tensor!))).toEqual(LAYERS)
      expect(wrong).toEqual([])
      await close(trials)
    })

    it('shows the updates of weights likewise', async () => {
      const { url, trials } = await write(join(ROOT, 'fixtures/checkpoints/run'))
      await open(url, 'overview')
      const { updates } = await trialOverview(trials[0]!)
      const last = new Map(updates.map(({ tensor, values }) => [tensor, String(values.at(-1))]))
      const cells = (await copied('.flow')).slice(1).map(row => row.split(','))
      expect(new Map(cells.map(([, , tensor, ratio]) => [tensor, ratio]))).toEqual(last)
      await close(trials)
    })

    it('marks causes, the best EVAL, and where the loss is NaN', async () => {
      const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
      await open(url, 'overview')
      expect(await page.textContent('.curve svg')).toContain('VanishingGradient')
      expect(await page.textContent('.curve .note:has-text("best")')).toMatch(
        /^○ The best EVAL: 2\.28\d+, at step \d+\.$/,
      )
      await close(trials)
      const broken = await write(writeLosses('broken', [3, Number.NaN, Number.NaN, 2, Number.NaN]))
      await open(broken.url, 'overview')
      expect(await page.locator('.curve svg g[aria-label=rect] rect').count()).toBe(2)
      await close(broken.trials)
    })

    it('opens the flow at the last step with something to see beside NaN and 0', async () => {
      const directory = join(scratch, 'lost-gradients')
      const writer = new TrialWriter(directory)
      const gradient = (name: string, value: number) =>
        ({ name: `gradient/${name}`, dtype: 'float64', shape: [1], values: [value] }) as const
      for (const [step, [a, b]] of [[1, 0] as const, [0, Number.NaN] as const].entries())
        writer.step({ step, tensors: [gradient('a', a), gradient('b', b)] })
      writer.end()
      const { url, trials } = await write(directory)
      await open(url, 'overview')
      expect(await page.textContent('.flow output')).toBe('step 0')
      expect(await page.textContent('.flow .note')).toContain('From step 1 on, all are NaN, infinite or 0.')
      await close(trials)
    })

    it('has a heading for each of several losses', async () => {
      const directory = join(scratch, 'losses')
      const writer = new TrialWriter(directory)
      const loss = (name: string, value: number) => ({ name, dtype: 'float64', shape: [], values: [value] }) as const
      for (const step of [0, 1]) writer.step({ step, tensors: [loss('a_loss', step), loss('b_loss', 1)] })
      writer.end()
      const { url, trials } = await write(directory)
      await open(url, 'overview')
      expect(await page.locator('.curve h2').allTextContents()).toEqual(['a_loss', 'b_loss'])
      await close(trials)
    })

    it('has a logarithmic loss where it spans decades', async () => {
      const { url, trials } = await write(writeLosses('decades', [1000, 10, 0.5]))
      await open(url, 'overview')
      expect(await page.textContent('.curve svg')).toContain('logarithmic')
      await close(trials)
    })
  })

  describe('of numbers', () => {
    /** A trial of a gradient, a number a step. */
    function writeNumbers(name: string, numbers: readonly number[], more: readonly number[] = []): string {
      const directory = join(scratch, name)
      const writer = new TrialWriter(directory)
      for (const [step, number] of numbers.entries()) {
        const tensor = (name: string, value: number) => ({
          name,
          dtype: 'float64' as const,
          shape: [1],
          values: [value],
        })
        writer.step({
          step,
          tensors: [tensor('gradient/w', number), ...(step in more ? [tensor('gradient/v', more[step]!)] : [])],
        })
      }
      writer.end()
      return directory
    }
    /** What the cells of the last heat map say, from left to right. */
    async function cells(count: number): Promise<string[]> {
      const maps = await page.locator('#view .heat-map').all()
      await maps.at(-1)!.locator('canvas').focus()
      await page.keyboard.press('ArrowRight')
      const said: string[] = []
      for (let i = 0; i < count; i++) {
        said.push((await maps.at(-1)!.locator('.readout').allTextContents())[0]!)
        await page.keyboard.press('ArrowRight')
      }
      return said
    }
    const legends = () => page.locator('#view .scale').allTextContents()

    it('of two trials shows their ratio around equal, with 0 and NaN apart', async () => {
      const a = writeNumbers('ratio-a', [4, 0, Number.NaN, 1, 2])
      const b = writeNumbers('ratio-b', [4, 5, 1, 0, 16])
      const { url, trials } = await write(a, b)
      await open(url, 'layers')
      expect((await legends()).at(-1)).toMatch(
        /^\|B\| beside \|A\|A 8 times BequalB 8 times ANaN or ∞0 in one of them$/,
      )
      expect((await cells(5)).map(text => /abs_mean (.*)$/.exec(text)![1])).toEqual([
        'A 4, B 4: equal',
        'A 0, B 5',
        'A NaN, B 1',
        'A 1, B 0',
        'A 2, B 16: B is 8 times A',
      ])
      expect(wrong).toEqual([])
      await close(trials)
    })

    it('that are equal in two trials are drawn as equal', async () => {
      const { url, trials } = await write(writeNumbers('same-a', [1, 2]), writeNumbers('same-b', [1, 2]))
      await open(url, 'layers')
      expect((await legends()).at(-1)).toContain('A 2 times BequalB 2 times A')
      await close(trials)
    })

    it('of which one is far beyond all others says so, and tells the others apart', async () => {
      const numbers = Array.from({ length: 40 }, (_, i) => (i === 20 ? 3e38 : 1 + i))
      const { url, trials } = await write(writeNumbers('far', numbers))
      await open(url, 'layers')
      await page.selectOption('.controls label:has-text("Scale") select', 'linear')
      await page.waitForSelector('.scale:has-text("linear")')
      expect(await legends()).toEqual(['abs_mean, linear1≥ 401 of 40 numbers lie beyond the ends; the largest is 3e38'])
      await page.selectOption('.controls label:has-text("Scale") select', 'log')
      await page.waitForSelector('.scale:has-text("logarithmic")')
      expect((await legends())[0]).toContain('the largest is 3e38')
      await close(trials)
    })
  })

  it('tells in each cell the number of the scan, to whoever moves by keys', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    const expected = new Map<string, number>()
    for await (const { tensor, step, reductions } of trials[0]!.scan({ collection: 'gradients', mode: 'TRAIN' }))
      expected.set(`${tensor} ${step}`, reductions.abs_mean as number)
    await open(url, 'layers')
    await page.locator('#view canvas').focus()
    const names = new Set<string>()
    const seen = new Set<string>()
    await page.keyboard.press('ArrowRight')
    for (let row = 0; row < expected.size / 9; row++) {
      await page.keyboard.press('Home')
      for (let step = 0; step < 9; step++) {
        const text = (await page.textContent('.readout'))!
        const [, name, number, value] = /^(\S+) · step (\d+) \(TRAIN \d+\): abs_mean (\S+)$/.exec(text)!
        expect(numberOf(value!), text).toBe(expected.get(`${name} ${number}`))
        seen.add(`${name} ${number}`)
        names.add(name!)
        await page.keyboard.press('ArrowRight')
      }
      await page.keyboard.press('ArrowDown')
    }
    expect(seen.size).toBe(expected.size)
    await page.keyboard.press('Enter')
    await page.waitForSelector('section.tensor')
    expect(await page.textContent('h2.name')).toBe([...names].at(-1))
    // From the model's input to its output, in every view.
    expect(layersAmong(names)).toEqual(LAYERS)
    const options = `[...document.querySelectorAll('#names option[value^="gradient/"]')].map(({ value }) => value)`
    expect(layersAmong((await page.evaluate(options)) as string[])).toEqual(LAYERS)
    await open(url, 'distributions')
    expect(layersAmong(await page.locator('.panel a').allTextContents())).toEqual(LAYERS)
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has all that is chosen in its address: a copied link opens the same', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'layers')
    const tell = () => expect.poll(() => page.evaluate('location.hash'), { timeout: 60_000 })
    const values = () =>
      page.evaluate(`[...document.querySelectorAll('.controls :is(select, input)')].map(one => one.value)`)
    for (const [i, value] of ['all', 'l2', 'linear'].entries()) {
      await page.selectOption(`.controls label:nth-of-type(${i + 1}) select`, value)
    }
    await page.fill('.controls input', 'hidden.7.weight')
    await page.waitForSelector('canvas[aria-label^="l2 of 1 row"]')
    await page.locator('canvas').focus()
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight')
    const link =
      '#layers?kind=all&show=l2&scale=linear&name=hidden.7.weight&tensor=gradient%2FDeepSigmoid_hidden.7.weight&step=20'
    await tell().toBe(link)
    const [before, read] = [await values(), await page.textContent('.readout')]
    await open(url, link.slice(1))
    expect(await values()).toEqual(before)
    expect(await page.textContent('.readout')).toBe(read)
    expect(read).toContain('gradient/DeepSigmoid_hidden.7.weight · step 20 (TRAIN 20): l2 ')
    // The others follow, and what is not there is left alone.
    await page.click('nav a:text-is("Overview")')
    await page.waitForSelector('.flow output')
    expect(await page.textContent('.flow output')).toBe('step 20 (TRAIN 20)')
    await tell().toBe('#overview?show=gradients&step=20')
    await open(url, 'layers?kind=nothing&show=meen&step=x')
    expect((await values()) as string[]).toEqual(['gradients', 'abs_mean', 'log', '', ''])
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('marks in every picture the step that is pointed at in one', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'overview')
    const [left, width, top] = (await page.evaluate(
      `(({ left, width, top }) => [left, width, top])(document.querySelector('.curve svg').getBoundingClientRect())`,
    )) as [number, number, number]
    await page.mouse.move(left + width * 0.36, top + 100)
    await page.waitForSelector('.flow output:text-is("step 30 (TRAIN 30)")')
    expect(await page.locator('.moment[visibility=visible]').count()).toBe(2)
    await page.fill('.flow input[type=range]', '0')
    await expect.poll(() => page.evaluate('location.hash'), { timeout: 60_000 }).toContain('step=0')
    await page.click('nav a:text-is("Tensors")')
    await page.waitForSelector('.distribution output:text-is("step 0 (TRAIN 0)")')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('can be walked through by keys alone', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'overview')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#view canvas')
    expect(await page.evaluate('document.activeElement.id')).toBe('view')
    // Five fields, the picture.
    for (let i = 0; i < 6; i++) await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.tagName')).toBe('CANVAS')
    await page.goBack()
    await page.waitForSelector('section.overview')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('gives the numbers of a chart as CSV, as a scan has them', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    const name = 'gradient/DeepSigmoid_inp.weight'
    await open(url, `tensor=${encodeURIComponent(name)}`)
    await page.selectOption('.controls select >> nth=0', 'l2')
    const rows = await copied('figure')
    const expected: string[] = []
    for await (const { step, reductions } of trials[0]!.scan({ tensors: name, reductions: ['l2'] }))
      expected.push(`TRAIN,${step},${reductions.l2}`)
    expect(rows).toEqual(['line,step,value', ...expected])
    await close(trials)
  })

  it('of two trials shows both on one scale, and the largest differences first', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'), join(TRIALS, 'mlp-all-zero'))
    for (const view of VIEWS) {
      await open(url, view)
      expect(wrong, view).toEqual([])
    }
    await open(url, 'overview')
    expect(await page.locator('article h2 .badge').allTextContents()).toEqual(['A', 'B', 'A', 'B'])
    expect((await page.locator('article .verdict').allTextContents())[0]).toMatch(
      /^The runs first differ at step 0, in /,
    )
    await page.click('text=How much, layer by layer')
    await page.waitForSelector('text=‖A − B‖ / ‖A‖')
    expect(await page.locator('figure figcaption').allTextContents()).toEqual(['ABHow far they are apart'])
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('of two trials has their scores, what changed most, and what only one of them has', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'), join(TRIALS, 'mlp-all-zero'))
    await open(url, 'overview')
    const rows = (await copied('.courses > div:has(.scores)')).slice(1).map(row => row.split(','))
    const overviews = await Promise.all(trials.map(trial => trialOverview(trial)))
    for (const [i, mode] of ['TRAIN', 'EVAL'].entries()) {
      const [a, b] = overviews.map(({ losses }) => losses.find(line => line.mode === mode)!)
      const ends = [a!.values.at(-1)!, b!.values.at(-1)!]
      const best = [a!, b!].flatMap(({ steps, values }) => {
        const least = Math.min(...values)
        return [least, steps[values.indexOf(least)]!]
      })
      expect(rows[i]).toEqual(['CrossEntropyLoss_output_0', mode, ...[...ends, ...best].map(String)])
    }
    // The better one of each is marked.
    expect(await page.locator('.scores tbody tr').first().locator('.better').count()).toBe(2)
    const apart = new Map<string, number>()
    await diff(trials[0]!, trials[1]!, {
      onDifference: ({ tensor, step, difference }) => {
        if (step === 0 && difference !== null && tensor.startsWith('gradient/'))
          apart.set(tensor, difference.relativeNorm!)
      },
    })
    const furthest = [...apart.values()].sort((a, b) => b - a).slice(0, 10)
    expect(await page.locator('.changed td').allTextContents()).toEqual(furthest.map(short))
    const only = await page.locator('.unmatched p').allTextContents()
    const [ofA, ofB] = trials.map(trial => new Set(trial.tensorNames()))
    expect(only.flatMap(text => (/^[AB]\d/.test(text) ? [Number.parseInt(text.slice(1), 10)] : []))).toEqual(
      [[...ofA!].filter(name => !ofB!.has(name)), [...ofB!].filter(name => !ofA!.has(name))]
        .map(({ length }) => length)
        .filter(count => count > 0),
    )
    // What is told of both lies side by side, and below each other on a narrow screen, where no number is cut.
    const tops = `[...document.querySelectorAll('h2')].filter(one => one.textContent.endsWith('Details')).map(one => Math.round(one.getBoundingClientRect().top))`
    const [ofA2, ofB2] = (await page.evaluate(tops)) as [number, number]
    expect(ofA2).toBe(ofB2)
    await page.setViewportSize({ width: 390, height: 844 })
    await open(url, 'overview')
    expect(await page.evaluate(CUT('.scores :is(td, th)'))).toBe(0)
    await page.setViewportSize({ width: 1280, height: 720 })
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('of two trials that are equal counts a tensor of several workers once', async () => {
    const { url, trials } = await write(join(TRIALS, 'workers-4'), join(TRIALS, 'workers-4'))
    await open(url, 'overview')
    expect(trials[0]!.workers()).toHaveLength(4)
    expect(await page.textContent('.courses p:has-text("Unchanged")')).toBe('Unchanged: 1 tensor.')
    await close(trials)
  })

  it('suggests a map where two trials have other names', async () => {
    const place = (name: string, weight: string) => {
      const directory = join(scratch, name)
      const writer = new TrialWriter(directory)
      const tensor = (name: string, values: readonly number[]) =>
        ({ name, dtype: 'float64', shape: [values.length], values }) as const
      writer.step({ step: 0, tensors: [tensor('in', [1]), tensor(weight, [1, 2, 3]), tensor('out', [1, 2])] })
      writer.end()
      return directory
    }
    const { url, trials } = await write(place('named-a', 'fc.weight'), place('named-b', 'linear.w'))
    await open(url, 'overview')
    expect(JSON.parse((await page.textContent('.unmatched pre'))!)).toEqual({ 'fc.weight': 'linear.w' })
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('shows classes as they were counted, where samples lie, and elements as they are', async () => {
    writeSamples(join(scratch, 'samples'))
    const { url, trials } = await write(join(scratch, 'samples'))
    await open(url, 'classes')
    const cells = () => page.locator('.confusion tbody tr:first-child td').allTextContents()
    // Of two samples of class 0 one was predicted to be 2.
    expect(await cells()).toEqual(['1', '', '1', '2', '50 %', '100 %', '67 %'])
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await page.evaluate(CUT('.confusion td'))).toBe(0)
    await page.setViewportSize({ width: 1280, height: 720 })
    await open(url, `tensor=${encodeURIComponent('Net_input_0')}`)
    expect(await page.locator('.images canvas').count()).toBe(4)
    await page.click('.elements summary')
    await page.waitForSelector('.elements td')
    expect((await page.locator('.elements td').allTextContents()).slice(0, 4)).toEqual(['0', '1', '2', '3'])
    expect(wrong).toEqual([])
    const file = join(scratch, 'embedded.html')
    writeFileSync(file, (await reportHtml(trials, { embed: 'bottleneck' })).html)
    await open(pathToFileURL(file).href, 'embedding')
    for (const method of ['pca', 'umap', 'tsne']) {
      await page.selectOption('.controls select', method)
      await page.waitForSelector(`.embedding svg[aria-label^="${{ pca: 'PCA', umap: 'UMAP', tsne: 't-SNE' }[method]}"]`)
      expect(await page.locator('.embedding svg circle').count()).toBe(4)
    }
    // Four of what was given, four of what was made of it.
    expect(await page.locator('.pairs canvas').count()).toBe(8)
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has the importance of features of a boosted training, as the scan has it', async () => {
    const { url, trials } = await write(join(TRIALS, 'xgb-cancer'))
    await open(url, 'boosting')
    const label = (await page.getAttribute('.card svg', 'aria-label'))!
    const importance = new Map<string, number>()
    const last = trials[0]!.steps().at(-1)!
    for await (const { tensor, reductions } of trials[0]!.scan({
      tensors: 'feature_importance/gain/',
      steps: last,
    }))
      importance.set(tensor!.split('/').at(-1)!, reductions.mean as number)
    const [[feature, most]] = [...importance].sort(([, a], [, b]) => b - a) as [[string, number]]
    expect(label).toMatch(new RegExp(`by gain at step ${last}: ${feature} ${String(most).slice(0, 6)}`))
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has the training and its validation in one chart, SHAP values and the area below the ROC', async () => {
    const { url, trials } = await write(join(TRIALS, 'xgb-cancer'))
    const trial = trials[0]!
    await open(url, 'overview')
    expect(await page.locator('.curve h2').allTextContents()).toEqual(['logloss', 'error'])
    expect((await page.locator('.curve .legend li').allTextContents()).slice(0, 2)).toEqual(['train', 'validation'])
    expect(await page.locator('.nan-path').count()).toBe(0)
    const last = trial.steps().at(-1)!
    await open(url, 'classes')
    const [labels, scores] = await Promise.all(
      ['labels', 'predictions'].map(async name => Array.from((await trial.tensor(name).value(last)).data, Number)),
    )
    const [positive, negative] = [1, 0].map(label => scores!.filter((_, i) => labels![i] === label))
    const wins = positive!.flatMap(a => negative!.map((b): number => (a > b ? 1 : a === b ? 0.5 : 0)))
    const area = wins.reduce((sum, win) => sum + win, 0) / wins.length
    expect(await page.textContent('.confusions')).toContain(`(AUC) is ${Number(area.toPrecision(4))}`)
    await open(url, 'boosting')
    await page.selectOption('.controls select', 'average_shap')
    const rows = await copied('.card')
    const shap = new Map<string, string>()
    for await (const { tensor, reductions } of trial.scan({ tensors: '^average_shap/', steps: last }))
      shap.set(tensor!.replace('average_shap/', ''), String(reductions.mean))
    expect(rows[0]).toBe('feature,average_shap')
    expect(new Map(rows.slice(1).map(row => row.split(',') as [string, string]))).toEqual(shap)
    const sizes = rows.slice(1).map(row => Math.abs(Number(row.split(',')[1])))
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a))
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has the trees as they were saved, and their depth', async () => {
    const { url, trials } = await write(join(TRIALS, 'xgb-cancer'))
    await open(url, 'boosting?step=0')
    const table = new Map<string, readonly string[]>()
    for (const column of ['ID', 'Feature', 'Split', 'Yes', 'No', 'Gain', 'Cover'])
      table.set(column, Array.from((await trials[0]!.tensor(`trees/${column}`).value(0)).data, String))
    const ids = table.get('ID')!
    const rows = (await copied('.trees')).slice(1).map(row => row.split(','))
    expect(rows.map(([, , feature]) => feature)).toEqual(table.get('Feature'))
    for (const [i, [, , , split, yes, no, gain, cover]] of rows.entries()) {
      const isLeaf = table.get('Feature')![i] === 'Leaf'
      const below = ['Yes', 'No'].map(column => String(isLeaf ? -1 : ids.indexOf(table.get(column)![i]!)))
      expect([split, yes, no, gain, cover]).toEqual([
        ...[isLeaf ? '' : table.get('Split')![i], ...below, table.get('Gain')![i], table.get('Cover')![i]],
      ])
    }
    const leaves = rows.filter(([, , feature]) => feature === 'Leaf').length
    const depth = Math.max(...rows.map(([, depth]) => Number(depth)))
    expect(await page.textContent('.trees .note')).toBe(`The tree at step 0: ${leaves} leaves, ${depth} deep.`)
    expect(await page.locator('.trees svg').first().locator('circle').count()).toBe(rows.length)
    await page.fill('.trees input[type=range]', '2')
    await page.waitForSelector('.trees .note:has-text("The tree at step 30: 3 leaves, 2 deep.")')
    const answers = (await page.locator('.trees svg text').allTextContents()).filter(text => /^(yes|no)$/.test(text))
    expect(answers.sort()).toEqual(['no', 'no', 'yes', 'yes'])
    // A shallow tree fills the picture of the deepest.
    const foot = await page.evaluate(
      `Math.max(...[...document.querySelectorAll('.trees circle')].map(one => Number(one.getAttribute('cy')))) / document.querySelector('.trees svg').viewBox.baseVal.height`,
    )
    expect(foot).toBeGreaterThan(0.8)
    const depths = page.locator('.card:has(h4:text-is("The depth of the trees")) [aria-label="y-axis tick label"] text')
    expect((await depths.allTextContents())[0]).toBe('0')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has each node of a damaged table of trees once, in its row', async () => {
    const directory = join(scratch, 'circles')
    const writer = new TrialWriter(directory)
    // A circle of 0 and 2, one of 3 alone, and nodes with the same one below them twice.
    const below = [[1, 2], [-1, -1], [0, -1], [3, 3], ...Array.from({ length: 60 }, (_, i) => [i + 5, i + 5])]
    const rows = [...below, [-1, -1]]
    const column = (name: string, of: (row: readonly number[], i: number) => number) => {
      return { name: `trees/${name}`, dtype: 'float32', shape: [rows.length], values: rows.map(of) } as const
    }
    const same = ['ID', 'Feature', 'Split', 'Gain', 'Cover'].map(name => column(name, (_, i) => i))
    writer.step({ step: 0, tensors: [...same, column('Yes', ([yes]) => yes!), column('No', ([, no]) => no!)] })
    writer.end()
    const { url, trials } = await write(directory)
    await open(url, 'boosting')
    const copies = (await copied('.trees')).slice(1).map(row => row.split(','))
    expect(copies.map(([, , feature]) => feature)).toEqual(rows.map((_, i) => String(i)))
    expect(await page.textContent('.trees .note')).toBe('The tree at step 0: 0 leaves, 60 deep.')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has the share of the batch for which each unit is dead or saturated', async () => {
    const directory = join(scratch, 'units')
    const writer = new TrialWriter(directory)
    const nan = Number.NaN
    const dead = [
      [1, 0, nan, 2, 0, 1],
      [1, 0, 1, 0, 0, 1],
    ]
    // Two samples of a channel of two positions, and of one that is at its ends.
    const images = [0.1, -0.2, 1, -0.999, 0.3, 0.4, 0.999, 1]
    for (const step of [0, 1]) {
      const float = (name: string, shape: readonly number[], values: readonly number[]) =>
        ({ name, dtype: 'float32', shape, values }) as const
      writer.step({
        step,
        tensors: [
          float('relu0_output_0', [2, 3], dead[step]!),
          float('gradient/relu0_output_0', [2, 3], dead[step]!),
          float('act1_output_0', [2, 2, 1, 2], images),
        ],
      })
    }
    writer.end()
    const { url, trials } = await write(directory)
    await open(url, 'units')
    // Half of one layer is off, a third of the other.
    expect([...(await cellsOf(3, 2))]).toEqual([
      ['unit 0 · step 0', '0 for 0 of 2 outputs'],
      ['unit 0 · step 1', '0 for 1 of 2 outputs'],
      ['unit 1 · step 0', '0 for 2 of 2 outputs'],
      ['unit 1 · step 1', '0 for 2 of 2 outputs'],
      ['unit 2 · step 0', '0 for 0 of 2 outputs'],
      ['unit 2 · step 1', '0 for 0 of 2 outputs'],
    ])
    // In the order of execution.
    expect(await page.locator('.units .card .note').allTextContents()).toEqual([
      '1 of 3 units is 0 for the whole batch at step 1.',
      '1 of 2 units is saturated for the whole batch at step 1.',
    ])
    expect((await copied('.units figure:nth-of-type(2)')).slice(1)).toEqual([
      ...['act1_output_0,0,0,0,4', 'act1_output_0,1,0,4,4', 'act1_output_0,0,1,0,4', 'act1_output_0,1,1,4,4'],
    ])
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has no reason for units that are not counted but what may have been one', async () => {
    const place = (name: string, shape: readonly number[]) => {
      const writer = new TrialWriter(join(scratch, name))
      writer.step({ step: 0, tensors: [{ name: 'relu0_output_0', dtype: 'float32', shape, values: [0, 1] }] })
      writer.end()
      return join(scratch, name)
    }
    const { url, trials } = await write(place('counted', [1, 2]), place('uncounted', [2]))
    await open(url, 'units')
    const [said] = await page.locator('.units h2:has-text("uncounted") + p').allTextContents()
    expect(said).toMatch(/^There is no layer whose units could be counted\. That needs saved elements/)
    await close(trials)
  })

  it('shows the samples of a cell of the confusions, and the worst reconstructions first', async () => {
    writeSamples(join(scratch, 'worst'))
    const { url, trials } = await write(join(scratch, 'worst'))
    await open(url, 'classes')
    await page.click('.confusion button[aria-label^="1 of class 0 predicted to be 2"]')
    await page.waitForSelector('.samples figure')
    expect(await page.locator('.samples figcaption').allTextContents()).toEqual(['sample 3'])
    expect(await page.locator('.samples canvas').count()).toBe(1)
    const file = join(scratch, 'worst-embedded.html')
    writeFileSync(file, (await reportHtml(trials, { embed: 'bottleneck' })).html)
    await open(pathToFileURL(file).href, 'embedding')
    const errors = Array.from({ length: 4 }, (_, sample) => {
      const own = Array.from({ length: 6 }, (_, i) => 6 * sample + i)
      return own.reduce((sum, x) => sum + (x - x * x) ** 2, 0) / 6
    })
    const captions = errors.map(
      (error, i) => `sample ${i}label ${[0, 1, 2, 0][i]}error ${even(Number(error.toPrecision(4)))}`,
    )
    expect(await page.locator('.pairs figcaption').allTextContents()).toEqual(captions.reverse())
    expect(wrong).toEqual([])
    await close(trials)
  })

  it.each([1440, 1024])('fills a screen of %i pixels with the classes, whatever their number', async width => {
    await page.setViewportSize({ width, height: 900 })
    writeSamples(join(scratch, `wide-${width}`))
    for (const [path, columns] of [
      [join(TRIALS, 'xgb-cancer'), width === 1440 ? 3 : 2],
      [join(scratch, `wide-${width}`), 2],
    ] as const) {
      const { url, trials } = await write(path)
      await open(url, 'classes')
      const [gaps, right] = (await page.evaluate(`(() => {
        const all = [...document.querySelectorAll('.confusions > *')].map(one => one.getBoundingClientRect())
        const gaps = all.slice(1).map(({ left, top }, i) => top === all[i].top ? left - all[i].right : Infinity)
        return [gaps, document.querySelector('#view').getBoundingClientRect().right - all.at(-1).right]
      })()`)) as [number[], number]
      expect(gaps.map(Math.round)).toEqual(Array(columns - 1).fill(16))
      expect(Math.abs(right)).toBeLessThan(1)
      await close(trials)
    }
    await page.setViewportSize({ width: 1280, height: 720 })
  })

  it('has one chart of the accuracies of two trials, and their tables side by side', async () => {
    const paths = ['one', 'other'].map(name => join(scratch, `confused-${name}`))
    for (const path of paths) writeSamples(path)
    const { url, trials } = await write(...paths)
    await page.setViewportSize({ width: 1440, height: 900 })
    await open(url, 'classes')
    expect(await page.locator('.legend li').allTextContents()).toEqual(['A', 'B'])
    const tops = (await page.evaluate(
      `[...document.querySelectorAll('.confusion:not(.measures)')].map(one => one.getBoundingClientRect().top)`,
    )) as number[]
    expect(tops).toEqual([tops[0], tops[0]])
    await page.setViewportSize({ width: 1280, height: 720 })
    await close(trials)
  })

  it('names the classes beside their recall to screen readers alone', async () => {
    const { url, trials } = await write(join(TRIALS, 'xgb-cancer'))
    await open(url, 'classes')
    expect((await headersOf('Recall, precision and F1')).sort()).toEqual([
      ...['0', '1', 'F1', 'Label', 'Precision', 'Recall', 'Samples'],
    ])
    const labels = `[...document.querySelectorAll('.measures th:first-child')].map(one => getComputedStyle(one).clipPath)`
    expect(new Set((await page.evaluate(labels)) as string[])).toEqual(new Set(['inset(50%)']))
    // Its numbers begin at its edge, in the rows of the other table.
    const places = (await page.evaluate(`(() => {
      const left = selector => document.querySelector(selector).getBoundingClientRect().left
      const tops = selector => [...document.querySelectorAll(selector)].map(one => Math.round(one.getBoundingClientRect().top))
      return [
        [left('.measures td') - left('.measures')],
        tops('.tables:first-of-type .wide tbody tr'),
        tops('.tables:first-of-type .measures tbody tr'),
      ]
    })()`)) as [number[], number[], number[]]
    expect(places[0]).toEqual([0])
    expect(places[2]).toEqual(places[1])
    await page.setViewportSize({ width: 390, height: 844 })
    expect(new Set((await page.evaluate(labels)) as string[])).toEqual(new Set(['none']))
    await page.setViewportSize({ width: 1280, height: 720 })
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has bars of features on one scale, their names and numbers aligned, with as many digits each', async () => {
    const { url, trials } = await write(join(TRIALS, 'xgb-cancer'))
    await open(url, 'boosting')
    await page.selectOption('.controls select', 'average_shap')
    await page.waitForSelector('.card svg[aria-label*="average_shap"]')
    const shap = (await copied('.card')).slice(1).map(row => Number(row.split(',')[1]))
    const [bars, names, numbers] = (await page.evaluate(`(() => {
      const svg = document.querySelector('.card svg')
      const places = selector => [...svg.querySelectorAll(selector)].map(one => one.getBoundingClientRect())
      const card = svg.parentElement.getBoundingClientRect()
      return [
        places('[aria-label=bar] rect').map(({ width }) => width),
        places('[aria-label^=y-axis] text').map(({ left, right }) => [Math.round(right - card.left), Math.round(left - card.left)]),
        [...svg.querySelectorAll('[aria-label=text] text')].map(one => one.textContent),
      ]
    })()`)) as [number[], [number, number][], string[]]
    const scale = bars[0]! / Math.abs(shap[0]!)
    for (const [i, width] of bars.entries())
      expect(Math.abs(width - scale * Math.abs(shap[i]!)), String(i)).toBeLessThan(0.6)
    const ends = names.map(([right]) => right)
    expect(Math.max(...ends) - Math.min(...ends)).toBeLessThanOrEqual(1)
    // No gutter before the names.
    expect(Math.min(...names.map(([, left]) => left))).toBeLessThan(40)
    expect(numbers.toSorted()).toEqual(shap.slice(0, 20).map(even).toSorted())
    expect(numbers.some(text => text.startsWith('−'))).toBe(true)
    expect(new Set(numbers.map(text => text.replace(/^−?0?[.]?0*|[.]/g, '').length))).toEqual(new Set([4]))
    // What has a line over the steps has its colour.
    const [fills, strokes] = (await page.evaluate(`[
      [...document.querySelectorAll('.card svg [aria-label=bar] rect')].slice(0, 6).map(one => getComputedStyle(one).fill),
      [...document.querySelectorAll('.cards .legend i')].map(one => getComputedStyle(one).borderTopColor),
    ]`)) as [string[], string[]]
    expect(fills).toEqual(strokes)
    await open(url, 'boosting?step=30')
    expect(await page.locator('.trees svg text').allTextContents()).toContain('−0.08111')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has features whose importance is NaN first, without a bar, and the others on their scale', async () => {
    const writer = new TrialWriter(join(scratch, 'lost-feature'))
    const tensors = [1, Number.NaN, 4].map(
      (value, i) => ({ name: `feature_importance/gain/f${i}`, dtype: 'float64', shape: [1], values: [value] }) as const,
    )
    writer.step({ step: 0, tensors })
    writer.end()
    const { url, trials } = await write(join(scratch, 'lost-feature'))
    await open(url, 'boosting')
    expect(await copied('.card')).toEqual(['feature,gain', 'f1,NaN', 'f2,4', 'f0,1'])
    const widths = (await page.evaluate(
      `[...document.querySelectorAll('.card svg [aria-label=bar] rect')].map(one => one.getBoundingClientRect().width)`,
    )) as number[]
    expect(widths[0]).toBeGreaterThan(100)
    expect(widths).toEqual([widths[0], expect.closeTo(widths[0]! / 4, 0)])
    expect(await page.locator('.card svg').first().locator('[aria-label=text] text').allTextContents()).toEqual([
      ...['NaN', '4.000', '1.000'],
    ])
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('draws the layers and units that are off most, and the others when they are asked for', async () => {
    const place = (name: string, layers: readonly (readonly [name: string, isDead: (unit: number) => boolean])[]) => {
      const writer = new TrialWriter(join(scratch, name))
      const units = Array.from({ length: 20 }, (_, unit) => unit)
      const tensors = layers.map(
        ([name, isDead]) =>
          ({ name, dtype: 'float32', shape: [1, 20], values: units.map(unit => (isDead(unit) ? 0 : 1)) }) as const,
      )
      writer.step({ step: 0, tensors })
      writer.end()
      return join(scratch, name)
    }
    // Of layer i the last i units are dead.
    const layers = Array.from({ length: 8 }, (_, i) => [`relu${i}_output_0`, (unit: number) => unit >= 20 - i] as const)
    const { url, trials } = await write(place('many-units', layers))
    await open(url, 'units')
    const names = () => page.locator('.units h4').allTextContents()
    expect(await names()).toEqual([2, 3, 4, 5, 6, 7].map(i => `relu${i}_output_0`))
    expect(await page.textContent('.rest')).toMatch(/^6 of 8 layers are drawn, those with the largest shares/)
    expect(await page.textContent('.units .note')).toContain('16 are drawn, those most often off.')
    expect(await copied('.units figure')).toHaveLength(21)
    expect([...(await cellsOf(16, 1)).keys()].map(cell => Number.parseInt(cell.slice(5), 10))).toEqual([
      ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 18, 19],
    ])
    /** What has the focus, and the heading of its figure. */
    const focused = () =>
      page.evaluate(
        `[document.activeElement.tagName, document.activeElement.closest('figure')?.querySelector('h4').textContent]`,
      )
    await page.locator('button:text-is("Draw all 20")').first().focus()
    await page.keyboard.press('Enter')
    await expect.poll(focused, { timeout: 60_000 }).toEqual(['CANVAS', 'relu2_output_0'])
    await expect.poll(async () => (await cellsOf(20, 1)).size, { timeout: 60_000 }).toBe(20)
    await page.focus('button:text-is("Draw the other 2")')
    await page.keyboard.press('Enter')
    await expect.poll(names, { timeout: 60_000 }).toHaveLength(8)
    expect(await focused()).toEqual(['CANVAS', 'relu0_output_0'])
    expect(await page.locator('.rest').count()).toBe(0)
    await page.setViewportSize({ width: 390, height: 844 })
    await open(url, 'units')
    expect(await names()).toHaveLength(3)
    await page.setViewportSize({ width: 1280, height: 720 })
    const pair = await write(join(scratch, 'many-units'), place('one', [['relu2_output_0', unit => unit === 15]]))
    await open(pair.url, 'units')
    // Both trials have the units that are off in one of them.
    expect([...(await cellsOf(16, 1)).keys()].map(cell => Number.parseInt(cell.slice(5), 10))).toEqual([
      ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 18, 19],
    ])
    const none = await write(place('none-off', [['relu0_output_0', () => false]]))
    await open(none.url, 'units')
    expect(await page.textContent('.rest')).toBe('No unit of 1 layer is ever off.Draw them')
    await page.click('.rest button')
    await expect.poll(names, { timeout: 60_000 }).toEqual(['relu0_output_0'])
    expect(wrong).toEqual([])
    await close([...trials, ...pair.trials, ...none.trials])
  })

  it('has colours of classes and numbers that stand out from a light ground and from a dark one', async () => {
    const place = (name: string, count: number) => {
      const writer = new TrialWriter(join(scratch, name))
      const numbers = Array.from({ length: count }, (_, i) => i)
      const tensor = (name: string, shape: readonly number[], values: readonly number[]) =>
        ({ name, dtype: 'float32', shape, values }) as const
      writer.step({
        step: 0,
        tensors: [tensor('labels', [count], numbers), tensor('code_output_0', [count, 2], [...numbers, ...numbers])],
      })
      writer.end()
      return createTrial(join(scratch, name), { requireCollections: false, refresh: 'manual' })
    }
    const trials = [await place('twelve', 12), await place('thirty', 30)]
    const file = join(scratch, 'colours.html')
    writeFileSync(file, (await reportHtml(trials, { embed: 'code_output_0' })).html)
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme })
      await open(pathToFileURL(file).href, 'embedding')
      const contrasts = (await page.evaluate(contrastsOf('.embedding circle'))) as number[]
      expect(contrasts).toHaveLength(42)
      expect(Math.min(...contrasts), colorScheme).toBeGreaterThanOrEqual(3)
    }
    expect((await page.locator('.embedding .legend li').allTextContents()).slice(0, 4)).toEqual([
      'labels',
      '0',
      '1',
      '2',
    ])
    expect(await page.locator('.embedding .ramp span span').allTextContents()).toEqual(['0', '29'])
    await page.emulateMedia({ colorScheme: 'light' })
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has the path of NaN, from the first tensor to the loss', async () => {
    const directory = join(scratch, 'path')
    const writer = new TrialWriter(directory)
    for (let step = 0; step < 3; step++) {
      const tensor = (name: string, values: readonly number[]) =>
        ({ name, dtype: 'float32', shape: [values.length], values }) as const
      const nan = Number.NaN
      writer.step({
        step,
        tensors: [
          tensor('loss', [step < 2 ? 1 : nan]),
          tensor('whole', [1, 2]),
          tensor('gradient/w', step < 1 ? [1, 2] : [Number.POSITIVE_INFINITY, nan]),
          // Saved at the first step and at the last.
          ...(step === 1 ? [] : [tensor('rare', [nan, step])]),
        ],
      })
    }
    writer.end()
    const { url, trials } = await write(directory)
    await open(url, 'overview')
    expect(await page.textContent('.nan-path .scale')).toBe('share of elements that are NaN or infinite> 01none')
    expect([...(await cellsOf(3, 3))]).toEqual([
      ['rare · step 0', '1 NaN and 0 infinite of 2 elements'],
      ['rare · step 1', 'not saved; at step 0 1 NaN and 0 infinite of 2 elements'],
      ['rare · step 2', '1 NaN and 0 infinite of 2 elements'],
      ['gradient/w · step 0', '0 NaN and 0 infinite of 2 elements'],
      ['gradient/w · step 1', '1 NaN and 1 infinite of 2 elements'],
      ['gradient/w · step 2', '1 NaN and 1 infinite of 2 elements'],
      ['loss · step 0', '0 NaN and 0 infinite of 1 element'],
      ['loss · step 1', '0 NaN and 0 infinite of 1 element'],
      ['loss · step 2', '1 NaN and 0 infinite of 1 element'],
    ])
    const { pixel } = lostShading()
    const channels = (share: number) => [0, 8, 16].map(bits => (pixel(share) >> bits) & 255)
    expect(channels(1)).toEqual([214, 0, 147])
    // Any share stands out from none.
    expect(Math.hypot(...channels(1e-9).map((value, i) => value - channels(0)[i]!))).toBeGreaterThan(100)
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('finds a tensor by parts of its name, with Enter', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'tensor')
    await page.fill('.controls input', 'grad HIDDEN.5')
    await page.keyboard.press('Enter')
    await page.waitForSelector('h2.name:has-text("gradient/DeepSigmoid_hidden.5")')
    await page.fill('.controls input', 'nothing-like-this')
    await page.keyboard.press('Enter')
    await page.waitForSelector('[role=status]:has-text("No tensor has nothing-like-this in its name.")')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it.each([390, 1024])('is no wider than a screen of %i pixels', async width => {
    await page.setViewportSize({ width, height: 800 })
    const pair = [join(TRIALS, 'mlp-vanishing'), join(TRIALS, 'mlp-all-zero')]
    for (const paths of [[join(TRIALS, 'xgb-cancer')], pair]) {
      const { url, trials } = await write(...paths)
      for (const view of Object.keys(TABS)) {
        await open(url, view)
        const beyond = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        expect(beyond, view).toBeLessThanOrEqual(0)
        // Findings and scores are not cut: each has its line.
        const cut = await page.evaluate(
          `[...document.querySelectorAll('.overview .wide')].filter(one => one.scrollWidth > one.clientWidth).length`,
        )
        expect(cut, view).toBe(0)
      }
      await close(trials)
    }
    await page.setViewportSize({ width: 1280, height: 720 })
  })

  it.each([390, 1440])('has tooltips that are never cut on a screen of %i pixels', async width => {
    await page.setViewportSize({ width, height: 900 })
    for (const [name, view] of [
      ['mlp-vanishing', 'overview'],
      ['xgb-cancer', 'boosting'],
    ] as const) {
      const { url, trials } = await write(join(TRIALS, name))
      await open(url, view)
      const cuts: number[] = []
      for (let i = 0; i < (await page.locator(PICTURES).count()); i++) {
        for (const corner of [0, 1, 2, 3]) {
          const at = (await page.evaluate(cornerOf(i, corner))) as [number, number]
          await page.mouse.move(0, 0)
          await page.mouse.move(...at)
          cuts.push(...((await page.evaluate(cutTips(i))) as number[]))
        }
      }
      expect(cuts.length, view).toBeGreaterThan(3)
      expect(Math.max(...cuts), view).toBeLessThanOrEqual(1)
      await close(trials)
    }
    await page.setViewportSize({ width: 1280, height: 720 })
  })

  it('has labels that can be read on colours in both schemes, and all texts where colours are forced', async () => {
    writeSamples(join(scratch, 'contrast'))
    const { url, trials } = await write(join(scratch, 'contrast'), join(TRIALS, 'mlp-vanishing'))
    const contrasts = async (selector: string) => {
      const all = (await page.evaluate(contrastsOf(selector))) as number[]
      expect(all.length, selector).toBeGreaterThan(0)
      return Math.min(...all)
    }
    for (const media of [{ colorScheme: 'dark' }, { colorScheme: 'light' }, { forcedColors: 'active' }] as const) {
      await page.emulateMedia({ forcedColors: 'none', ...media })
      const said = JSON.stringify(media)
      await open(url, 'classes')
      expect(await page.evaluate(`matchMedia('(forced-colors: active)').matches`)).toBe('forcedColors' in media)
      for (const label of ['.confusion td button', 'h2 .badge'])
        expect(await contrasts(label), `${label} ${said}`).toBeGreaterThanOrEqual(4.5)
      await open(url, 'distributions')
      expect(await contrasts('.panel path'), said).toBeGreaterThanOrEqual(3)
      for (const text of ['svg text', ':is(p, h2, a, button, select, li)'])
        expect(await contrasts(`#view ${text}`), `${text} ${said}`).toBeGreaterThanOrEqual(4.5)
    }
    await page.emulateMedia({ forcedColors: 'none' })
    await close(trials)
  })

  it('uses a screen of 2560 pixels: pictures lie side by side', async () => {
    await page.setViewportSize({ width: 2560, height: 1200 })
    const { url, trials } = await write(join(TRIALS, 'xgb-cancer'), join(TRIALS, 'mlp-vanishing'))
    for (const view of ['overview', 'distributions', 'boosting']) {
      await open(url, view)
      const [beyond, columns] = (await page.evaluate(
        `[document.documentElement.scrollWidth - document.documentElement.clientWidth, new Set([...document.querySelectorAll('#view svg')].map(one => one.getBoundingClientRect()).filter(({ width }) => width > 100).map(({ left }) => Math.round(left))).size]`,
      )) as [number, number]
      expect(beyond, view).toBeLessThanOrEqual(0)
      expect(columns, view).toBeGreaterThan(1)
    }
    await page.setViewportSize({ width: 1280, height: 720 })
    await close(trials)
  })

  it('is read by touch on a narrow screen', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    const context = await browser.newContext({ hasTouch: true, viewport: { width: 390, height: 844 } })
    const touched = await context.newPage()
    const show = async (view: string) => {
      await touched.goto('about:blank')
      await touched.goto(`${url}#${view}`)
      await touched.waitForSelector('#report:not([aria-busy])')
    }
    const middleOf = async (selector: string): Promise<readonly [number, number]> => {
      await touched.locator(selector).first().scrollIntoViewIfNeeded()
      return (await touched.evaluate(
        `(({ left, top, width, height }) => [left + width * 0.7, top + height / 2])(document.querySelector('${selector}').getBoundingClientRect())`,
      )) as [number, number]
    }
    const touch = async (selector: string) => touched.touchscreen.tap(...(await middleOf(selector)))
    await show('layers')
    await touch('canvas')
    await touched.waitForSelector('.readout:has-text("abs_mean ")')
    const [cut, action] = (await touched.evaluate(
      `[document.querySelector('.readout').scrollWidth - document.querySelector('.readout').clientWidth, getComputedStyle(document.querySelector('canvas')).touchAction]`,
    )) as [number, string]
    // A finger that moves scrolls the page.
    expect([cut <= 0, action]).toEqual([true, 'manipulation'])
    await touch('canvas')
    await touched.waitForSelector('h2.name')
    await show('distributions')
    await touch('.panel svg')
    await touched.waitForSelector('.panel p:has-text(" elements (")')
    await show('tensor')
    const ends = (await touched.evaluate(
      `[...document.querySelectorAll('.distribution svg')].map(svg => [...svg.querySelectorAll('[aria-label="x-axis tick label"] text')].map(text => text.getBoundingClientRect()).map(({ left, right }) => [left, right]))`,
    )) as [left: number, right: number][][]
    for (const axis of ends)
      for (const [i, [left]] of axis.slice(1).entries()) expect(left).toBeGreaterThan(axis[i]![1])
    expect(ends.length).toBeGreaterThan(1)
    await show('overview')
    await touch('.curve svg')
    await touched.waitForSelector('.curve [aria-label=tip]:has-text("step ")')
    await context.close()
    await close(trials)
  })

  it('shows all distributions of a kind at one step, with their numbers as a scan has them', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'distributions?step=20')
    const titles = async () => {
      const names = await page.locator('.panel a').allTextContents()
      const texts = await page.locator('.panel p').allTextContents()
      return new Map(names.map((name, i) => [name, texts[i]!]))
    }
    const expected = new Map<string, string>()
    for await (const { tensor, reductions } of trials[0]!.scan({ collection: 'gradients', steps: 20 })) {
      const { data } = await trials[0]!.tensor(tensor!).value(20)
      const below = Array.from(data as Float32Array).filter(x => x <= 0).length / data.length
      expected.set(
        tensor!,
        `${Number((100 * Number(below.toPrecision(4))).toPrecision(4))} % ≤ 0, variance ${short(reductions.variance as number)}`,
      )
    }
    expect(await titles()).toEqual(expected)
    const outline = () => page.getAttribute('.panel path', 'd')
    const before = await outline()
    await page.fill('.player input', '0')
    expect(await outline()).not.toBe(before)
    expect(await page.textContent('.player output')).toBe('step 0 (TRAIN 0)')
    // By keys, as any slider.
    await page.focus('.player input')
    await page.keyboard.press('ArrowRight')
    expect(await page.textContent('.player output')).toBe('step 10 (TRAIN 10)')
    await page.fill('.controls input', 'hidden.7.weight')
    await expect.poll(() => page.locator('.panel').count(), { timeout: 60_000 }).toBe(1)
    const download = page.waitForEvent('download')
    await page.click('.player button:text-is("GIF")')
    const saved = await download
    expect(saved.suggestedFilename()).toBe('mlp-vanishing-distributions-of-gradients.gif')
    expect(
      readFileSync((await saved.path())!)
        .subarray(0, 6)
        .toString(),
    ).toBe('GIF89a')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has the distributions of two trials side by side where there is room, else over each other', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'), join(TRIALS, 'mlp-all-zero'))
    await open(url, 'distributions')
    expect(await page.locator('.legend li').allTextContents()).toEqual(['A', 'B'])
    const texts = await page.locator('.panel p').allTextContents()
    // Each side has its numbers below it, of three digits.
    for (const side of ['A', 'B']) {
      expect(texts.find(text => text.startsWith(`${side}: `))).toMatch(
        /^\w: [\d.]{1,4} % ≤ 0, variance (0|\d\.\d{1,2}e−\d+|0\.0*\d{1,3})(,|$)/,
      )
    }
    const both = page.locator(`.panel:has-text("B: ")`).first()
    const pictures = () =>
      Promise.all([both.locator('svg').count(), both.locator('svg').first().locator('path').count()])
    expect(await pictures()).toEqual([2, 1])
    const note = () => page.textContent('#view .note')
    expect(await note()).toBe('One axis and one height for all steps of a tensor. A and B share them.')
    const ends = () => page.locator('.panel svg > text').allTextContents()
    const own = await ends()
    const axes = '.controls label:has-text("Values") select'
    await page.selectOption(axes, 'shared')
    await expect.poll(async () => new Set(await ends()).size, { timeout: 60_000 }).toBe(2)
    expect(new Set(own).size).toBeGreaterThan(2)
    await page.selectOption(axes, 'own')
    await page.selectOption('.controls label:has-text("Axes of A and B") select', 'apart')
    await expect.poll(note, { timeout: 60_000 }).toContain('heights can’t be compared')
    expect(await ends()).not.toEqual(own)
    await page.setViewportSize({ width: 900, height: 720 })
    await open(url, 'distributions')
    expect(await pictures()).toEqual([1, 2])
    await page.setViewportSize({ width: 1280, height: 720 })
    expect(wrong).toEqual([])
    await close(trials)
  })

  describe('of a training that has become still', () => {
    const SIZES = [3, 0.01, 0.02, 0.01]
    const tensors = (size: number) => [
      { name: 'loss', dtype: 'float32', shape: [], values: [size] } as const,
      {
        name: 'gradient/w.weight',
        dtype: 'float32',
        shape: [9],
        values: Array.from({ length: 9 }, (_, i) => size * (i - 4)),
      } as const,
      { name: 'w.weight', dtype: 'float32', shape: [2, 3], values: [1, 2, 3, 4, 5, size] } as const,
    ]
    /** A trial of those steps: of TRAIN, but the last of EVAL. */
    const writeSteps = (name: string, steps: readonly number[]): string => {
      const writer = new TrialWriter(join(scratch, name))
      for (const [i, step] of steps.entries()) {
        writer.step({ step, mode: i === steps.length - 1 ? 'EVAL' : 'TRAIN', tensors: tensors(SIZES[i]!) })
      }
      writer.end()
      return join(scratch, name)
    }

    it('opens a weight, and shows of a loss nothing but the course of its value', async () => {
      const { url, trials } = await write(writeSteps('still', [0, 1, 2, 3]))
      await open(url, 'tensor')
      expect(await page.textContent('h2.name')).toBe('w.weight')
      expect(await page.locator('.distribution, .elements').count()).toBe(2)
      await open(url, 'tensor=loss')
      expect(await page.locator('.distribution, .elements, .player, label:has-text("Show")').count()).toBe(0)
      expect(await page.locator('#view figure svg').count()).toBe(1)
      expect(await page.textContent('#view figure svg')).toContain('value')
      expect((await copied('figure')).slice(1).map(row => Number(row.split(',')[2]))).toEqual(
        SIZES.map(size => Math.fround(size)),
      )
      expect(wrong).toEqual([])
      await close(trials)
    })

    it('has an axis of each step where that of all would leave a line', async () => {
      const { url, trials } = await write(writeSteps('still', [0, 1, 2, 3]))
      const axes = () => page.locator('.controls label:has-text("Values") option:checked').allTextContents()
      const top = () =>
        page.evaluate(
          `Math.min(...document.querySelector('.panel path').getAttribute('d').match(/(?<=,)[\\d.]+/g).map(Number))`,
        )
      await open(url, 'distributions')
      expect([...(await axes()), await page.textContent('#view .note')]).toEqual([
        'Of each step',
        'Each step has its own axis and height: shapes can be compared, sizes can’t.',
      ])
      // The highest bar ends below the picture's edge.
      const shift = await page.getAttribute('.panel path', 'transform')
      expect([await top(), shift]).toEqual([0, 'translate(0 6)'])
      await open(url, 'distributions?axes=own')
      expect(await axes()).toEqual(['Of all steps'])
      await open(url, 'distributions?kind=weights')
      expect(await axes()).toEqual(['Of all steps'])
      await close(trials)
    })

    it.each([
      ['the last step of both', [0, 4, 8, 9], [0, 4, 6, 7], ['4 (TRAIN 4)', '4 (TRAIN 4)']],
      ['the last steps of a mode', [0, 4, 8, 9], [0, 2, 5], ['9 (EVAL 9)', '5 (EVAL 5)']],
    ])('compares two at %s', async (_, a, b, expected) => {
      const { url, trials } = await write(writeSteps('still-a', a), writeSteps(`still-b${b.length}`, b))
      await open(url, 'tensor=w.weight')
      expect(await page.locator('.distribution output').allTextContents()).toEqual(expected.map(step => `step ${step}`))
      expect(await page.locator('.elements option:checked').allTextContents()).toEqual(expected)
      const frames = await page.evaluate(
        `[...document.querySelectorAll('.distribution svg')].map(svg => [svg.getBoundingClientRect().top, svg.getBoundingClientRect().height])`,
      )
      const [ofA, , ...ofB] = frames as readonly (readonly number[])[]
      expect(ofB[0]).toEqual(ofA)
      await close(trials)
    })
  })

  it('of two checkpoints has their numbers in a line, and their histograms alone', async () => {
    const names = ['one.weight', 'two.weight']
    writeWeights(join(scratch, 'tuned-a'), names, i => i + 1)
    writeWeights(join(scratch, 'tuned-b'), names, i => (i < 2 ? i + 1 : i + 2))
    const { url, trials } = await write(join(scratch, 'tuned-a'), join(scratch, 'tuned-b'))
    await open(url, 'tensor=one.weight')
    const values = () => page.textContent('#view .values')
    expect(await values()).toBe('l2: A 2.23606797749979 at step 0 · B 2.23606797749979 at step 0 · equal l2')
    expect(await copied('.tensor')).toEqual(['line,step,value', ...['A', 'B'].map(run => `${run},0,2.23606797749979`)])
    expect(await page.locator('.distribution').count()).toBe(2)
    expect(await page.locator('.distribution svg').count()).toBe(2)
    expect(await page.locator('button:text-is("GIF"), button:text-is("MP4"), button:text-is("Play")').count()).toBe(0)
    await open(url, 'tensor=two.weight')
    expect(await values()).toBe('l2: A 5 at step 0 · B 6.4031242374328485 at step 0')
    await open(url, 'distributions')
    expect(await page.locator('button:text-is("GIF")').count()).toBe(0)
    expect(wrong).toEqual([])
    const [early, late] = ['early', 'late'].map(name => join(scratch, name))
    writeWeights(join(early!, 'checkpoint-1'), names, i => i + 1)
    writeWeights(join(late!, 'checkpoint-7'), names, i => i + 1)
    const pair = await write(early!, late!)
    await open(pair.url, 'tensor=one.weight')
    expect(await values()).toBe('l2: A 2.23606797749979 at step 1 · B 2.23606797749979 at step 7')
    const alone = await write(early!)
    await open(alone.url, 'tensor=one.weight')
    expect(await values()).toBe('l2: 2.23606797749979 at step 1')
    await close([...trials, ...pair.trials, ...alone.trials])
  })

  it('has ridges of all tensors, an axis of each step, a symmetric logarithm, and counts under the pointer', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    // Of few elements, none is left out.
    const name = 'gradient/DeepSigmoid_out.bias'
    await open(url, `distributions?name=${name}`)
    const first = page.locator('.panel').first()
    const steps = trials[0]!.tensor(name).steps()
    const ends = () => first.locator('svg > text').allTextContents()
    const all = await ends()
    await page.selectOption('.controls label:has-text("Values") select', 'step')
    await expect.poll(ends, { timeout: 60_000 }).not.toEqual(all)
    const { data } = await trials[0]!.tensor(name).value(steps.at(-1)!)
    const least = Math.min(...Array.from(data, Number))
    expect((await ends())[0]).toBe(short(Number(least.toPrecision(4))))
    // All elements are in the bins: their counts are told from left to right.
    const box = (await page.evaluate(
      `(({ left, top, width, height }) => [left, top, width, height])(document.querySelector('.panel svg').getBoundingClientRect())`,
    )) as [number, number, number, number]
    const counts = new Map<string, number>()
    for (let x = 1; x < box[2]; x += 1) {
      await page.mouse.move(box[0] + x, box[1] + box[3] / 2)
      const [, bin, count] = /^(.*): (\d+) of/.exec((await first.locator('p').allTextContents())[0]!) ?? []
      if (bin !== undefined) counts.set(bin, Number(count))
    }
    expect([...counts.values()].reduce((sum, count) => sum + count, 0)).toBe(data.length)
    const path = await page.getAttribute('.panel path', 'd')
    await page.selectOption('.controls label:has-text("Axis") select', 'symlog')
    await expect.poll(() => page.getAttribute('.panel path', 'd'), { timeout: 60_000 }).not.toBe(path)
    await page.selectOption('.controls label:has-text("Steps as") select', 'ridges')
    await expect.poll(() => first.locator('path').count(), { timeout: 60_000 }).toBe(Math.min(16, steps.length))
    // Of each step its own stands out.
    await page.selectOption('.controls label:has-text("Values") select', 'own')
    const weights = () =>
      page.evaluate(
        `[...document.querySelector('.panel svg').querySelectorAll('path')].map(path => path.getAttribute('stroke-width'))`,
      ) as Promise<string[]>
    for (const chosen of [0, 2]) {
      await page.fill('.player input', String(chosen))
      const widths = steps.map((_, i) => (i === chosen ? '2' : '1'))
      await expect.poll(weights, { timeout: 60_000 }).toEqual(widths)
    }
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('plays and moves by keys, wherever the focus is', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'distributions')
    await page.evaluate(`document.getElementById('view').focus()`)
    await page.keyboard.press('ArrowLeft')
    expect(await page.textContent('.player output')).toBe('step 82 (TRAIN 70)')
    await page.keyboard.press(' ')
    await page.waitForSelector('.player.on')
    await page.keyboard.press(' ')
    expect(await page.locator('.player.on').count()).toBe(0)
    await close(trials)
  })

  it('saves the animation as a video, where the browser can, and says so where it can’t', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'distributions?name=hidden.7.weight')
    const download = page.waitForEvent('download')
    await page
      .locator('.player button')
      .all()
      .then(buttons => buttons.at(-1)!.click())
    const saved = await download
    expect(saved.suggestedFilename()).toMatch(/^mlp-vanishing-distributions-of-gradients\.(mp4|webm)$/)
    const bytes = readFileSync((await saved.path())!)
    const isMp4 = bytes.subarray(4, 8).toString() === 'ftyp'
    expect(isMp4 || bytes.readUInt32BE(0) === 0x1a45dfa3).toBe(true)
    await page.evaluate('delete globalThis.MediaRecorder')
    await page.selectOption('.controls label:has-text("Axis") select', 'symlog')
    await page.waitForSelector('.player:has-text("This browser makes no videos")')
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has bars of what is NaN or infinite, with their counts', async () => {
    const directory = join(scratch, 'lost')
    const writer = new TrialWriter(directory)
    const values = [1, 2, 3, Number.NaN, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 4, 5]
    writer.step({ step: 0, tensors: [{ name: 'gradient/w', dtype: 'float32', shape: [8], values }] })
    writer.end()
    const { url, trials } = await write(directory)
    for (const view of ['distributions', 'tensor']) {
      await open(url, view)
      expect(await page.locator('.lost title').allTextContents(), view).toEqual([
        ...['−∞: 0 of 8 elements', 'NaN: 1 of 8 elements', '+∞: 2 of 8 elements'],
      ])
    }
    expect(wrong).toEqual([])
    await close(trials)
  })

  it('has bars of NaN in ridges from the first value on, also after a step before it', async () => {
    const directory = join(scratch, 'late')
    const writer = new TrialWriter(directory)
    const tensor = (name: string, values: readonly number[]) =>
      ({ name, dtype: 'float32', shape: [values.length], values }) as const
    writer.step({ step: 0, tensors: [tensor('gradient/early', [1, 2])] })
    writer.step({ step: 1, tensors: [tensor('gradient/early', [1, 2]), tensor('gradient/late', [1, Number.NaN, 2])] })
    writer.end()
    const { url, trials } = await write(directory)
    await open(url, 'distributions')
    await page.selectOption('.controls label:has-text("Steps as") select', 'ridges')
    const bars = () => page.locator('.panel:has-text("late") .lost').count()
    await expect.poll(bars, { timeout: 60_000 }).toBe(1)
    for (const [at, count] of [0, 1].entries()) {
      await page.fill('.player input', String(at))
      expect(await bars()).toBe(count)
    }
    await close(trials)
  })

  it('of two trials has the same steps over each other, and marks and filters their modes', async () => {
    const place = (name: string, steps: readonly number[], times = 1) => {
      const directory = join(scratch, name)
      const writer = new TrialWriter(directory)
      for (const step of steps) {
        const mode = step % 2 === 0 ? 'TRAIN' : 'EVAL'
        const tensors = [{ name: 'gradient/w', dtype: 'float32' as const, shape: [1], values: [times * (1 + step)] }]
        writer.step({ step, mode, modeStep: step, tensors })
      }
      writer.end()
      return directory
    }
    const { url, trials } = await write(place('aligned-a', [0, 1, 2]), place('aligned-b', [1, 2, 3, 4]))
    await open(url, 'layers')
    expect(await page.locator('.legend li').allTextContents()).toEqual(['TRAIN', 'EVAL'])
    // Both have the columns 0 to 4.
    expect([...(await cellsOf(1, 5)).values()]).toEqual([
      'abs_mean 1',
      'abs_mean 2',
      'abs_mean 3',
      'not saved',
      'not saved',
    ])
    // The picture of both has the steps of both.
    expect(await page.locator('.maps .note').allTextContents()).toEqual(['2 steps with numbers of both: 1, 2.'])
    expect(await copied('.maps figure:last-child')).toEqual([
      'tensor,worker,step,A,B',
      ...['gradient/w,worker_0,1,2,2', 'gradient/w,worker_0,2,3,3'],
    ])
    const hasBand = () =>
      page.evaluate(
        `(one => one.getContext('2d').getImageData(0, one.height - 1, one.width, 1).data.some(value => value > 0))(document.querySelector('#view canvas'))`,
      )
    expect(await hasBand()).toBe(true)
    await page.selectOption('.controls label:has-text("Steps of") select', 'EVAL')
    await page.waitForSelector('canvas[aria-label^="abs_mean of 1 row at 2 steps"]')
    expect([...(await cellsOf(1, 2)).keys()]).toEqual(['gradient/w · step 1 (EVAL 1)', 'gradient/w · step 3'])
    expect(await hasBand()).toBe(false)
    expect(wrong).toEqual([])
    const few = await write(place('few-a', [0, 1, 2, 3]), place('few-b', [0, 4, 5, 6], 2))
    await open(few.url, 'overview')
    expect(await page.textContent('.verdict')).toMatch(
      /^The runs first differ at step 0 of the 1 step that both have \(A 4, B 4\), in gradient\/w /,
    )
    expect(await page.locator('h3:text-is("Scores"), .scores').count()).toBe(0)
    expect(await page.textContent('.unmatched')).toContain('No loss was saved: there are no scores.')
    await close([...trials, ...few.trials])
  })

  it('shows distributions as ridges or as a heat map', async () => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'tensor')
    const { length } = trials[0]!.tensor((await page.textContent('h2.name'))!).steps()
    await page.selectOption('.controls label:has-text("All steps as") select', 'heat map')
    const cells = await page.locator('.distribution svg').first().locator('rect').count()
    expect(cells).toBeGreaterThan(3 * length)
    expect(wrong).toEqual([])
    await close(trials)
  })

  it.each([
    ['GIF', 'gif', 'GIF89a'],
    ['PNG', 'png', '\u0089PNG'],
    ['SVG', 'svg', '<svg'],
  ])('saves %s files with the name of the trial and of what they show', async (name, ending, magic) => {
    const { url, trials } = await write(join(TRIALS, 'mlp-vanishing'))
    await open(url, 'tensor')
    const shownTensor = (await page.textContent('h2.name'))!.replace('/', '-')
    const download = page.waitForEvent('download')
    await page.locator(`.distribution button:text-is("${name}")`).first().click()
    const saved = await download
    const file = saved.suggestedFilename()
    expect([file.startsWith('mlp-vanishing-'), file.includes(shownTensor), file.split('.').at(-1)]).toEqual([
      ...[true, true, ending],
    ])
    const bytes = readFileSync((await saved.path())!)
    expect(bytes.subarray(0, magic.length).toString('latin1')).toBe(magic)
    expect(bytes.length).toBeGreaterThan(1000)
    // It says what it shows, in the font of the page.
    if (ending === 'svg') {
      const [text, font] = ['mlp-vanishing: The distribution of the elements of', 'font-family="system-ui']
      expect([bytes.toString().includes(text), bytes.toString().includes(font)]).toEqual([true, true])
    }
    expect(wrong).toEqual([])
    await close(trials)
  })

  it.each([
    ['hostile', writeHostile],
    ['hostile-checkpoint', writeHostileCheckpoint],
  ])('runs nothing that a %s is made of', async (name, make) => {
    make(join(scratch, name))
    const { url, trials } = await write(join(scratch, name))
    for (const view of VIEWS) {
      await open(url, view)
      expect(wrong, view).toEqual([])
      expect(await page.title()).toBe(`${name} – trialscan`)
      expect(await page.locator('img').count()).toBe(0)
    }
    // Marks that reorder a line are spelled out.
    await open(url, `tensor=${encodeURIComponent('gradient/\u202egnp.exe')}`)
    expect(await page.textContent('h2.name')).toBe('gradient/\\u{202e}gnp.exe')
    await close(trials)
  })
})
