/** A training that is killed: `node capture.mjs DIRECTORY` saves steps as fast as it can. */

import { createWriter } from '#dist/index.js'

const writer = await createWriter(process.argv[2], { saveConfig: { saveInterval: 1 }, checksums: true })
writer.setMode('TRAIN')
for (let step = 0; step < 100_000; step++) {
  await writer.step()
  await writer.save('short', Float64Array.of(step, -step))
  await writer.save('long', new Float32Array(100_000).fill(step), { shape: [100, 1000] })
  if (step % 3 === 0) await writer.save(`new/${step}`, [step], { collection: `of-${step % 2}` })
}
await writer.close()
