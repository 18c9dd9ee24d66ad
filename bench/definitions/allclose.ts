/** How many elements of two tensors are not close to each other. */
import { normals } from '../../fixtures/random.js'
import { type Case, contender, type Definition, expectSame, type Options, sizeName } from '../definition.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'

const MIB = 1 << 20
const RTOL = 1e-5
const ATOL = 1e-8

export const allclose: Definition = {
  name: 'allclose',
  measures:
    'pairs of float32 tensors in memory; GB/s count both (in place: the core’s memory, so without the way there)',
  *cases({ quick }: Options): Generator<Case> {
    for (const byteLength of quick ? [MIB] : [MIB, 64 * MIB]) {
      const a = Float32Array.from(normals(byteLength / 4, 4))
      // Every 1000th is far off, the others hardly.
      const b = a.map((value, i) => (i % 1000 === 0 ? value * 1.1 + 1 : value * (1 + 1e-6)))
      const wrong = expectSame(Math.ceil(a.length / 1000))
      yield {
        size: `float32 ${sizeName(byteLength)}`,
        byteLength: 2 * byteLength,
        contenders: [
          contender(ours.NAME, ours.allclose(a, b, RTOL, ATOL), wrong),
          contender(`${ours.NAME}, in place`, ours.allcloseInPlace(a, b, RTOL, ATOL), wrong),
          contender(plainJs.NAME, plainJs.allclose(a, b, RTOL, ATOL), wrong),
        ],
      }
    }
  },
}
