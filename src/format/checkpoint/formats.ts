/** The formats of checkpoints, in the order in which they are tried. Adding one is its file, its tests and a line here. */

import { DISTRIBUTED } from './dcp/format.js'
import type { TensorFormat } from './stored-tensor.js'
import { TORCH } from './torch/format.js'

export const FORMATS: readonly TensorFormat[] = [DISTRIBUTED, TORCH]
