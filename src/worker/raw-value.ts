/** A value as it crosses a thread, of what a record was found to hold. */

import type { Engine } from '../engine/engine.js'
import type { RecordContents } from '../engine/slots.js'
import type { RawValue } from '../job/value.js'

export function rawValue(
  { dtype, shape }: Pick<RecordContents, 'dtype' | 'shape'>,
  bytes: Uint8Array<ArrayBuffer> | null,
  strings: string[] | null,
  engine: Engine,
): RawValue {
  const widened =
    bytes !== null && (dtype === 'float16' || dtype === 'bfloat16')
      ? engine.values.widenToFloat32(dtype, new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2))
      : null
  return { dtype, shape, bytes: bytes ?? new Uint8Array(0), widened, strings }
}
