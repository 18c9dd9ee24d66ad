/** The sketch of a distribution, beside the moments that it is filled with, and what an exact median takes. */
import { KnownMoments } from '#dist/core/border/abi.js'
import { Engine } from '#dist/core/engine.js'
import { Moments } from '#dist/core/moments.js'
import { Distribution } from '#dist/core/statistics/distribution.js'
import { normals } from '../../fixtures/random.js'
import { type Case, contender, type Definition, type Options, sizeName } from '../definition.js'
import * as ours from '../engines/ours.js'

const MIB = 1 << 20

export const sketch: Definition = {
  name: 'sketch',
  measures: 'all moments of a tensor in memory: alone, with the sketch of its distribution, and then its exact median',
  *cases({ quick }: Options): Generator<Case> {
    for (const byteLength of quick ? [MIB] : [MIB, 64 * MIB]) {
      const data = Float32Array.from(normals(byteLength / 4, 3))
      const { engine, batch, start } = loaded(data)
      const sketched = engine.reserveSketch().for('float32')
      const sorted = data.slice().sort()
      const median = (sorted[data.length / 2 - 1]! + sorted[data.length / 2]!) / 2
      const wrong = (got: number) =>
        Math.abs(got - median) <= Math.abs(median) / 65 + 1e-12 ? undefined : `expected about ${median}, got ${got}`
      const reduce = (into: typeof sketched | null) => {
        engine.resetRow(batch)
        engine.addToRow(batch, 'float32', start, data.length, 0, KnownMoments.all, into)
        return engine.rows(batch, 1)
      }
      yield {
        size: `float32 ${sizeName(byteLength)}`,
        byteLength,
        contenders: [
          contender(
            ours.NAME,
            () => reduce(null)[0],
            count => (count === data.length ? undefined : `counted ${count}`),
          ),
          contender(
            `${ours.NAME}, with a sketch`,
            () => {
              const row = reduce(sketched).slice()
              return Distribution.of(new Moments('float32', row), sketched.take('float32', row)).quantile(0.5)
            },
            wrong,
          ),
          contender(
            `${ours.NAME}, with the exact median`,
            () => {
              reduce(null)
              return engine.elements.percentiles('float32', start, data.length, [50])[0]!
            },
            wrong,
          ),
        ],
      }
    }
  },
}

function loaded(data: Float32Array) {
  const engine = new Engine()
  engine.reset()
  const start = engine.reserveBytes(data.byteLength)
  engine.view(start, data.byteLength).set(new Uint8Array(data.buffer))
  return { engine, batch: engine.reserveBatch(1), start }
}
