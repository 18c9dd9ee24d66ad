/** `trialscan copy`: copies new files of a trial to disk. */

import { copyTrial } from '../../integrity/repair/copy.js'
import { EXIT } from '../exit.js'
import { bytesText, counted, countText } from '../format/number.js'
import { onlyPlaceOptions, type S3Flags } from '../options/s3.js'
import { writeTo } from '../output.js'
import { expectOutside } from '../real-path.js'
import { safe } from '../terminal.js'

/** @returns the exit code */
export async function copy(trial: string, directory: string, flags: S3Flags, signal: AbortSignal): Promise<number> {
  await expectOutside(trial, directory, 'a directory', '<DIR>')
  const { copied, copiedBytes, kept } = await copyTrial(trial, directory, {
    ...onlyPlaceOptions(trial, flags),
    signal,
  })
  const before = kept > 0 ? `; ${countText(kept)} were there already` : ''
  const text = `copied ${counted(copied, 'file')}, ${bytesText(copiedBytes)}, to ${safe(directory)}${before}\n`
  await writeTo(undefined, output => output.write(text))
  return EXIT.ok
}
