/** The formats of checkpoints, in the order in which they are tried. Adding one is its file, its tests and a line here. */

import type { TensorFormat } from './stored-tensor.js'

export const FORMATS: readonly TensorFormat[] = []
