/** The structure of a torch file or a pickle, for a look at it before it is loaded. */

import { expectText } from '../../../base/arguments.js'
import { checkOptions, optionsOf } from '../../../base/options.js'
import type { PickleStructure } from '../../../format/checkpoint/torch/read-structure.js'
import { openStore, storeSpec } from '../../../storage/open.js'
import { S3_OPTIONS } from '../../../storage/s3/options.js'
import type { S3Options } from '../../../storage/s3/spec.js'
import { rangedFile } from './ranged-file.js'

export interface StructureOptions {
  /** Region, endpoint and credentials for S3. */
  readonly s3?: S3Options | undefined
}

const OPTIONS = optionsOf<StructureOptions>({ s3: S3_OPTIONS })

/**
 * Reads the structure of a torch.save file or a pickle, without running anything in it.
 * @param path the path of a file, on disk or on S3
 * @throws FormatError if it is neither; StoreError; UsageError
 */
export async function pickleStructure(path: string, options?: StructureOptions): Promise<PickleStructure> {
  const { s3 } = checkOptions('pickleStructure', OPTIONS, options)
  expectText('pickleStructure', 'path', path)
  const at = path.replace(/\/+$/, '').lastIndexOf('/') + 1
  const store = openStore(storeSpec(at === 0 ? '.' : path.slice(0, at), s3 && { s3 }))
  try {
    const { readStructure } = await import('../../../format/checkpoint/torch/read-structure.js')
    return await readStructure(await rangedFile(store, path.slice(at)))
  } finally {
    await store.close()
  }
}
