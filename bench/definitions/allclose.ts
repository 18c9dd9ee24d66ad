/** `allclose`: the number of elements of two tensors that are not close to each other. */
import { normals } from '../../fixtures/random.js'
import { type Case, contender, type Definition, expectSame, type Options, sizeName } from '../definition.js'
import { single } from '../engines/answers.js'
import * as native from '../engines/native.js'
import * as numpy from '../engines/numpy.js'
import * as ours from '../engines/ours.js'
import * as plainJs from '../engines/plain-js.js'
import { scratchFile } from '../scratch.js'

const KIB = 1024
const MIB = KIB * KIB
const RTOL = 1e-5
const ATOL = 1e-8

export const allclose: Definition = {
  name: 'allclose',
  measures:
    'pairs of float32 tensors in memory; GB/s count both (in place: the core’s memory, so without the way there)',
  *cases({ quick }: Options): Generator<Case> {
    for (const byteLength of quick ? [64 * KIB, MIB] : [4 * KIB, 64 * KIB, MIB, 64 * MIB]) {
      const a = Float32Array.from(normals(byteLength / 4, 4))
      // Every 1000th is far off, the others hardly.
      const b = a.map((value, i) => (i % 1000 === 0 ? value * 1.1 + 1 : value * (1 + 1e-6)))
      const wrong = expectSame(Math.ceil(a.length / 1000))
      const request = ['allclose', fileOf(a), fileOf(b), RTOL, ATOL]
      yield {
        size: `float32 ${sizeName(byteLength)}`,
        byteLength: 2 * byteLength,
        contenders: [
          contender(`${ours.NAME}, in place`, ours.allcloseInPlace(a, b, RTOL, ATOL), wrong),
          contender(ours.NAME, ours.allclose(a, b, RTOL, ATOL), wrong),
          contender(plainJs.NAME, plainJs.allclose(a, b, RTOL, ATOL), wrong),
          // It says whether all are close, and looks at all of them for that.
          ...numpy.contenders('', request, single(expectSame(0))),
          ...native.contenders('', request, single(wrong)),
        ],
      }
    }
  },
}

function fileOf({ buffer, byteOffset, byteLength }: Float32Array): string {
  return scratchFile(new Uint8Array(buffer, byteOffset, byteLength))
}
