/** A thread that places samples: it is given rows and options, and replies once. */

import { parentPort, workerData } from 'node:worker_threads'
import { placedByAll } from './embed.js'

const [rows, options] = workerData as Parameters<typeof placedByAll>
parentPort!.postMessage(await placedByAll(rows, options))
