/** A training that is killed: `node capture.mjs DIRECTORY KIND` saves steps as fast as it can, in one of the ways that writers know. */

import { createWriter } from '#dist/index.js'

const [path, kind] = process.argv.slice(2)
const EVERY = { saveConfig: { saveInterval: 1 } }

/** What is different in each, and the steps of one that does not count them. */
const KINDS = {
  plain: {},
  // From the last steps of one directory of index files to the first of the next.
  checksums: { checksums: true, startStep: 996 },
  durable: { fsync: 'step' },
  // Steps that are too long to be written at once.
  long: { checksums: true, queueByteLength: 1 << 20 },
  recorded: { checksums: true },
  tensorboard: { tensorboard: `${path}-logs` },
  workers: { numWorkers: 3 },
}

const longTensor = step => new Float32Array(kind === 'long' ? 800_000 : 50_000).fill(step)

async function save(writer, i, step) {
  writer.setMode(i % 5 === 4 ? 'EVAL' : 'TRAIN')
  await writer.step()
  await writer.save('short', Float64Array.of(step, -step))
  await writer.save('long', longTensor(step), { shape: [100, longTensor(step).length / 100] })
  if (i % 3 === 0) await writer.save(`new/${step}`, [step], { collection: `of-${step % 2}` })
}

const workers = kind === 'workers' ? ['worker_0', 'worker_1', 'worker_2'] : ['worker_0']
const writers = await Promise.all(workers.map(worker => createWriter(path, { ...EVERY, ...KINDS[kind], worker })))
for (let i = 0; i < 100_000; i++) {
  if (kind === 'recorded') {
    // Each number below 10,007 once, in no order.
    const step = (i * 5_003) % 10_007
    await writers[0].record(step, { short: Float64Array.of(step, -step), long: longTensor(step) })
  } else await Promise.all(writers.map(writer => save(writer, i, writer.globalStep + 1)))
}
for (const writer of writers) await writer.close()
