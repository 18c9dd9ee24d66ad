/** `trialscan show --out x.gif`: the distribution of tensors' elements, one frame per step. */

import { UsageError } from '../../base/errors.js'
import { Distribution } from '../../core/statistics/distribution.js'
import { RELU_OUTPUTS } from '../../rules/base/names.js'
import type { Trial } from '../../trial/trial.js'
import { DEFAULTS } from '../../view/histograms/histograms.js'
import { histogramPicture, pictureKind } from '../../view/histograms/picture.js'
import { EXIT } from '../exit.js'
import { counted } from '../format/number.js'
import { defined } from '../options/given.js'
import { expectS3 } from '../options/s3.js'
import { writeTo } from '../output.js'
import { expectReplaceable } from '../real-path.js'
import { withTrial } from '../scan/trials.js'
import { note, safe } from '../terminal.js'
import type { ShowFlags } from './show-ridge.js'

/**
 * @param name the name of a tensor or a collection, or a pattern
 * @returns the exit code
 */
export async function showHistograms(path: string, name: string, out: string, flags: ShowFlags): Promise<number> {
  const { steps, step, modeStep, mode, worker, npy, format, picture } = flags
  const others = { '--step': step, '--mode-step': modeStep, '--npy': npy, '--format': format, '--picture': picture }
  const other = Object.entries(others).find(([, given]) => given !== undefined)
  if (other) throw new UsageError(`expected --out ${out} without ${other[0]}: the picture shows steps, as --steps says`)
  await expectReplaceable(path, out)
  expectS3(flags, [path])
  return withTrial(path, flags, async trial => {
    const tensors = tensorsOf(trial, name)
    const sketches = new Map<string, Map<number, Distribution>>()
    let [missing, failed] = [0, null as string | null]
    for await (const row of trial.scan({
      tensors,
      reductions: ['sketch'],
      ...defined({ steps: steps?.selection, mode, workers: worker }),
    })) {
      const { sketch } = row.reductions
      if (sketch instanceof Distribution) {
        const bySteps = sketches.get(row.tensor!) ?? new Map<number, Distribution>()
        sketches.set(row.tensor!, bySteps.set(row.step, bySteps.get(row.step)?.merge(sketch) ?? sketch))
      } else if (row.error) failed ??= row.error.message
      else missing++
    }
    if (failed !== null) note(failed)
    if (missing > 0) note(`${counted(missing, 'value')} left out: only reductions were saved, or they have no order`)
    if (sketches.size === 0) {
      note(`there is nothing to draw of ${safe(name)}${steps === undefined ? '' : ` at the steps ${steps.text}`}`)
      return failed === null ? EXIT.query : EXIT.format
    }
    const bytes = histogramPicture([sketches], pictureKind(out)!, { ...DEFAULTS, title: trial.name })
    await writeTo(out, output => output.writeBytes(bytes))
    note(`wrote ${safe(out)}: ${counted(sketches.size, 'tensor')}`)
    return failed === null ? EXIT.ok : EXIT.format
  })
}

/**
 * The tensors of a name.
 * @throws TensorUnavailable with the nearest names
 */
function tensorsOf(trial: Trial, name: string): readonly string[] {
  if (trial.hasTensor(name)) return [name]
  const matching = trial.tensorNames({ regex: name })
  if (matching.length > 0) return matching
  const members = trial.collections().get(name)?.members ?? []
  if (members.length > 0) return members
  // Hooks other than that of MXNet number the layers.
  const outputs = name === 'relu_output' ? trial.tensorNames({ regex: RELU_OUTPUTS }) : []
  return outputs.length > 0 ? outputs : [trial.tensor(name).name]
}
