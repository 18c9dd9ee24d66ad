/** Makes a transferable value from the content of a record. */

import { isNarrowFloat } from '../../core/dtype.js'
import type { Engine } from '../../core/engine.js'
import type { RecordContents } from '../../core/slots.js'
import type { RawValue } from '../job/value-job.js'

export function rawValue(
  { dtype, shape }: Pick<RecordContents, 'dtype' | 'shape'>,
  bytes: Uint8Array<ArrayBuffer> | null,
  strings: string[] | null,
  engine: Engine,
): RawValue {
  const count = shape.reduce((product, size) => product * size, 1)
  const widened = bytes !== null && isNarrowFloat(dtype) ? engine.values.widenToFloat32(dtype, bytes, count) : null
  return { dtype, shape, bytes: bytes ?? new Uint8Array(0), widened, strings }
}
