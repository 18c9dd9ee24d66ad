import { createTrial } from '#dist/index.js'
import { sharedTrials } from '../support/golden.js'
import { OPTIONS, makeBucket, upload } from '../support/s3.js'
const bucket = await makeBucket()
for (const { name, directory } of sharedTrials()) {
  await upload(directory, bucket, `t/${name}/`)
  const rows = async (path: string) => {
    const started = performance.now()
    const trial = await createTrial(path, { s3: OPTIONS, requireCollections: false })
    const opened = performance.now()
    const open = { ...trial.traffic }
    const scan = trial.scan({ threads: 0 })
    const out: Uint8Array[] = []
    for await (const lines of scan.lines('jsonl')) out.push(lines)
    return { text: Buffer.concat(out).toString(), open, all: trial.traffic, stats: scan.stats.traffic, openMs: opened - started, ms: performance.now() - opened }
  }
  const a = await rows(directory)
  const b = await rows(`s3://${bucket}/t/${name}`)
  console.log(name, a.text === b.text, a.text.length, b.open, b.stats, b.openMs.toFixed(), b.ms.toFixed(), a.ms.toFixed())
}
