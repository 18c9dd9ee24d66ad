/** Tensors as pictures in a terminal: what each protocol says is decoded here, and held against the numbers. */

import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { gridOf, pictureFor, pictureText } from '#dist/cli/format/view/picture.js'
import { createTrial, type TensorData } from '#dist/index.js'
import { ROOT } from '../support/golden.js'
import { trialscan } from './run.js'

const CNN = join(ROOT, 'fixtures/trials/cnn-raw-and-reductions')

/** A tensor of float64. */
function tensor(shape: readonly number[], values: readonly number[]): TensorData {
  return { dtype: 'float64', shape, data: Float64Array.from(values) } as unknown as TensorData
}

const ESC = String.fromCharCode(27)

interface Pixels {
  readonly width: number
  readonly height: number
  readonly at: (x: number, y: number) => readonly number[] | undefined
}

/** Sixels, decoded bit by bit (DEC STD 070). */
function sixels(text: string): Pixels {
  const [, width, height, body] = new RegExp(`${ESC}P0;1q"1;1;(\\d+);(\\d+)(.*)${ESC}\\\\`, 's').exec(text)!
  const palette = new Map<string, number[]>()
  const pixels = new Map<string, number[]>()
  let [x, y, color] = [0, 0, '']
  for (const [part] of body!.matchAll(/#\d+(;2;\d+;\d+;\d+)?|!\d+[?-~]|[?-~]|[$-]/g)) {
    if (part.startsWith('#')) {
      const [register, ...rest] = part.slice(1).split(';')
      if (rest.length > 0) palette.set(register!, rest.slice(1).map(Number))
      color = register!
    } else if (part === '$') x = 0
    else if (part === '-') [x, y] = [0, y + 6]
    else {
      const count = part.startsWith('!') ? Number.parseInt(part.slice(1), 10) : 1
      const bits = part.charCodeAt(part.length - 1) - 63
      for (let i = 0; i < count; i++, x++) {
        for (let row = 0; row < 6; row++) if (bits & (1 << row)) pixels.set(`${x} ${y + row}`, palette.get(color)!)
      }
    }
  }
  return { width: Number(width), height: Number(height), at: (x, y) => pixels.get(`${x} ${y}`) }
}

/** kitty's pieces, put together. */
function kitty(text: string): Pixels {
  const pieces = [...text.matchAll(new RegExp(`${ESC}_G([^;]*);([^${ESC}]*)${ESC}\\\\`, 'g'))]
  const [, width, height] = /s=(\d+),v=(\d+)/.exec(pieces[0]![1]!)!
  for (const [i, [, keys, data]] of pieces.entries()) {
    expect(data!.length).toBeLessThanOrEqual(4096)
    expect(keys).toContain(`m=${i < pieces.length - 1 ? 1 : 0}`)
  }
  const rgba = Buffer.from(pieces.map(([, , data]) => data).join(''), 'base64')
  expect(rgba.length).toBe(Number(width) * Number(height) * 4)
  const at = (x: number, y: number) => {
    const i = (y * Number(width) + x) * 4
    return rgba[i + 3] === 0 ? undefined : [...rgba.subarray(i, i + 3)]
  }
  return { width: Number(width), height: Number(height), at }
}

const VALUES = [0, 1, 2, 3, Number.NaN, 5]

describe.each([
  ['sixel', sixels, 100 / 255],
  ['kitty', kitty, 1],
] as const)('%s', (how, decode, unit) => {
  it('has a square of one colour for each number, from dark to bright, and pink where there is none', () => {
    const grid = gridOf(tensor([2, 3], VALUES))!
    const { width, height, at } = decode(pictureText(grid, how, 80, true))
    expect([width % 3, height % 2]).toEqual([0, 0])
    const side = width / 3
    const colors = VALUES.map((_, i) => at((i % 3) * side + side / 2, Math.floor(i / 3) * side + side / 2)!)
    const near = (color: readonly number[], rgb: readonly number[]) => {
      for (const [i, part] of rgb.entries()) expect(Math.abs(color[i]! / unit - part)).toBeLessThan(8)
    }
    near(colors[0]!, [68, 1, 84])
    near(colors[5]!, [253, 231, 37])
    near(colors[4]!, [214, 0, 147])
    // Every corner of a square is like its middle.
    for (let i = 0; i < 6; i++) {
      const [left, top] = [(i % 3) * side, Math.floor(i / 3) * side]
      for (const [dx, dy] of [
        [0, 0],
        [side - 1, 0],
        [0, side - 1],
        [side - 1, side - 1],
      ] as const)
        expect(at(left + dx, top + dy)).toEqual(colors[i])
    }
  })

  it('leaves a gap between images', () => {
    const grid = gridOf(tensor([2, 2, 2], [0, 1, 2, 3, 4, 5, 6, 7]))!
    expect(grid).toMatchObject({ width: 5, height: 2, images: { shown: 2, all: 2 } })
    const { width, at } = decode(pictureText(grid, how, 80, true))
    const side = width / 5
    expect(at(2.5 * side, 0)).toBeUndefined()
    expect(at(0, 0)).toBeDefined()
    expect(at(4.5 * side, 0)).toBeDefined()
  })
})

describe('blocks', () => {
  it('are two numbers each in colour, and densities without', () => {
    const grid = gridOf(tensor([2, 3], VALUES))!
    const colored = pictureText(grid, 'blocks', 80, true)
    expect(colored.split('\n')[0]!.match(/▀/g)).toHaveLength(3)
    expect(colored).toContain('\x1b[38;2;68;1;84m')
    expect(colored).toContain('\x1b[48;2;214;0;147m')
    expect(pictureText(grid, 'blocks', 80, false)).toBe(' ░▒\n▓!█\n')
  })

  it('fit the terminal: means of neighbours, not finite where one of them is', () => {
    const grid = gridOf(tensor([1, 8], [0, 0, 4, 4, 8, Number.NaN, 10, 10]))!
    expect(pictureText(grid, 'blocks', 4, false)).toBe(' ▒!█\n')
  })
})

describe('what there is to see', () => {
  it('is nothing of scalars, vectors, texts and complex numbers', () => {
    for (const shape of [[], [4]]) expect(gridOf(tensor(shape, [1, 2, 3, 4]))).toBeNull()
    expect(gridOf({ ...tensor([2, 2], [1, 2, 3, 4]), dtype: 'string' } as TensorData)).toBeNull()
  })

  it.each([
    [{ TERM: 'xterm-kitty' }, 'kitty'],
    [{ TERM: 'xterm-256color', KITTY_WINDOW_ID: '1' }, 'kitty'],
    [{ TERM: 'foot' }, 'sixel'],
    [{ TERM: 'xterm-256color', TERM_PROGRAM: 'WezTerm' }, 'sixel'],
    [{ TERM: 'tmux-256color', TMUX: '/tmp/x', KITTY_WINDOW_ID: '1' }, 'blocks'],
    [{ TERM: 'xterm-256color' }, 'blocks'],
    [{}, 'blocks'],
  ])('%j draws by %s', (env, how) => expect(pictureFor(env)).toBe(how))
})

describe('trialscan show', () => {
  it('draws what is asked for, and nothing into a pipe by itself', async () => {
    const plain = await trialscan('show', CNN, 'CNN_fc1.weight')
    expect(plain.stdout).not.toContain('\x1b')
    const drawn = await trialscan('show', CNN, 'CNN_fc1.weight', '--picture', 'kitty')
    expect(kitty(drawn.stdout)).toMatchObject({ width: 480, height: 150 })
    expect(drawn.stdout.startsWith(plain.stdout)).toBe(true)
  })

  it('of several steps is a histogram a line, all on one axis, whose bars are the numbers of the scan', async () => {
    const { code, stdout } = await trialscan('show', CNN, 'gradient/CNN_fc1.weight', '--steps', ':')
    expect(code).toBe(0)
    const trial = await createTrial(CNN, { requireCollections: false })
    const steps = trial.tensor('gradient/CNN_fc1.weight').steps()
    const lines = stdout.split('\n').slice(1, -2)
    expect(lines.map(line => Number.parseInt(line, 10))).toEqual(steps)
    const [, from, to] = /from (\S+) to (\S+)/.exec(stdout)!
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (const [i, step] of steps.entries()) {
      const values = Array.from((await trial.tensor('gradient/CNN_fc1.weight').value(step)).data as Float32Array)
      low = Math.min(low, ...values)
      high = Math.max(high, ...values)
      const bars = /▕(.*)▏/.exec(lines[i]!)![1]!
      expect(bars).toHaveLength(48)
      // Where the smallest and the largest are, there is a bar.
      for (const value of [Math.min(...values), Math.max(...values)]) {
        // The outermost of all may be left out.
        if (value < Number(from) || value > Number(to)) continue
        const at = ((value - Number(from)) / (Number(to) - Number(from))) * 48
        const near = bars.slice(Math.max(0, Math.floor(at) - 1), Math.floor(at) + 2)
        expect(near.trim(), `${step}: ${value}`).not.toBe('')
      }
    }
    expect(Math.abs(Number(from) - low) / (high - low)).toBeLessThan(0.05)
    expect(Math.abs(Number(to) - high) / (high - low)).toBeLessThan(0.05)
    await trial.close()
  })

  it.each([
    [['--steps', ':', '--step', '0'], 2, 'expected --steps or --step'],
    [['--steps', ':', '--format', 'csv'], 2, 'expected --steps with --format table'],
    [['--steps', '5:6'], 5, 'at none of the steps'],
    [['--picture', 'png'], 2, 'Allowed choices'],
  ])('%j is told in a line', async (args, code, message) => {
    const outcome = await trialscan('show', CNN, 'CNN_fc1.weight', ...args)
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(message)])
  })
})
