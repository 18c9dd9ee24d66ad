/** The structure of a file of torch, or of a pickle alone. */

import { runPickleInTurns } from '../pickle/machine.js'
import type { Pickle } from '../pickle/tape.js'
import type { RangedFile } from '../stored-tensor.js'
import { type StructureValue, structureOf } from './structure.js'
import { dangerousOf, foreignOf } from './summary.js'
import { openTorchFile } from './torch.js'

const MAX_PICKLE_BYTES = 2 ** 30
const PROTO = 0x80

export interface PickleStructure {
  /** The layout: a torch.save file since 1.6 or before, or a bare pickle. */
  readonly layout: 'zip' | 'legacy' | 'pickle'
  /** The classes and functions in it that plain checkpoints don't have. */
  readonly foreign: readonly string[]
  /** The globals that run code, or access the network or files: `torch.load` may call them. */
  readonly dangerous: readonly string[]
  /** The content as JSON: a dict is an object, a tensor `{ tensor, shape }`, an object `{ class, arguments, state, … }`. */
  readonly structure: StructureValue
}

/** The structure of a torch file or a pickle. @throws FormatError, if it is neither; StoreError */
export async function readStructure(file: RangedFile): Promise<PickleStructure> {
  const { pickle, layout } = await pickleOf(file)
  const structure = structureOf(pickle)
  return { layout, foreign: foreignOf(pickle), dangerous: dangerousOf(pickle), structure }
}

/** The names in it that run code when torch loads it. @throws as `readStructure` */
export async function dangerousIn(file: RangedFile): Promise<readonly string[]> {
  return dangerousOf((await pickleOf(file)).pickle)
}

async function pickleOf(
  file: RangedFile,
): Promise<{ readonly pickle: Pickle; readonly layout: PickleStructure['layout'] }> {
  try {
    return await openTorchFile(file)
  } catch (error) {
    const [first] = await file.read(0, 1)
    if (first !== PROTO || file.byteLength > MAX_PICKLE_BYTES) throw error
    return { pickle: await runPickleInTurns(await file.read(0, file.byteLength), file.url), layout: 'pickle' }
  }
}
