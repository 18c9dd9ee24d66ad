// The smallest program that scans a trial of float32 tensors on two threads, with the core and nothing else of trialscan: no options,
// no messages about bad input, no other dtypes. What it takes is Node.js itself, reading and the kernels.
//   node smallest.cjs CORE DIR OUT        all 18 reductions of all tensors, as CSV
const { openSync, readdirSync, readFileSync, readSync, writeFileSync } = require('node:fs')
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads')

const PIECE_BYTES = 4 << 20
// Of the core's ABI (src/core/border/abi.ts): bytes of a slot and of a row, and numbers of a row.
const SLOT = 160
const ROW = 272
const [ALL, MINIMAL] = [31, 1]

/** Runs of records of a file. */
function piecesOf(dir) {
  const pieces = []
  for (const folder of readdirSync(`${dir}/index`)) {
    for (const name of readdirSync(`${dir}/index/${folder}`)) {
      const { meta, tensor_payload } = JSON.parse(readFileSync(`${dir}/index/${folder}/${name}`, 'utf8'))
      const path = `${dir}/${meta.event_file_name}`
      let piece
      for (const { tensorname, start_idx, length } of tensor_payload) {
        if (piece === undefined || piece.length + length > PIECE_BYTES) {
          piece = { path, step: Number.parseInt(name, 10), start: start_idx, length: 0, records: [] }
          pieces.push(piece)
        }
        piece.records.push({ name: tensorname, length })
        piece.length += length
      }
    }
  }
  return pieces
}

/** Texts of the pieces that this thread has taken, by their number. */
function work(pieces, module, taken) {
  const core = new WebAssembly.Instance(module, {}).exports
  const most = pieces.reduce((most, { records }) => Math.max(most, records.length), 0)
  const longest = pieces.reduce((most, { length }) => Math.max(most, length), 0)
  const [slots, rows, window] = [most * SLOT, most * ROW, longest].map(n => core.arenaReserve(n))
  const texts = []
  let path
  let file
  for (;;) {
    const at = Atomics.add(taken, 0, 1)
    if (at >= pieces.length) return texts
    const piece = pieces[at]
    if (piece.path !== path) {
      path = piece.path
      file = openSync(path)
    }
    const { buffer } = core.memory
    readSync(file, new Uint8Array(buffer), window, piece.length, piece.start)
    const words = new Uint32Array(buffer, slots)
    const doubles = new Float64Array(buffer)
    let frame = window
    for (const [i, { length }] of piece.records.entries()) {
      words.set([frame, length, length, 0, 0, 0], (i * SLOT) / 4)
      doubles[(slots + i * SLOT + 24) / 8] = piece.step
      frame += length
    }
    core.scanRecords(slots, piece.records.length, MINIMAL, rows, ALL)
    // Its memory may have grown.
    const found = new Uint32Array(core.memory.buffer, slots)
    let text = ''
    for (const [i, { name }] of piece.records.entries()) {
      if (found[(i * SLOT) / 4 + 8] !== 0) throw new Error(`${name}: bad record`)
      text += line(name, piece.step, new Float64Array(core.memory.buffer, rows + i * ROW, ROW / 8))
    }
    texts[at] = text
  }
}

function line(name, step, row) {
  const [count, , , , , min, max, minAbs, maxAbs, , , , , , sum, sumAbs, , mean, meanAbs] = row
  const variance = row[26] / count
  const varianceAbs = row[27] / count
  const norm = Math.sqrt(row[29])
  const prod = row[31] * 2 ** row[32]
  const absolute = `${sumAbs},${norm},${minAbs},${maxAbs},${meanAbs},${Math.sqrt(varianceAbs)},${varianceAbs},${sumAbs},${Math.abs(prod)},${sumAbs},${norm}`
  return `${name},${step},${min},${max},${mean},${Math.sqrt(variance)},${variance},${sum},${prod},${absolute}\n`
}

if (isMainThread) {
  const [path, dir, out] = process.argv.slice(2)
  const module = new WebAssembly.Module(readFileSync(path))
  const taken = new Int32Array(new SharedArrayBuffer(4))
  const other = new Worker(__filename, { workerData: { dir, module, taken } })
  const texts = work(piecesOf(dir), module, taken)
  other.on('message', others => {
    const all = Array.from({ length: Math.max(texts.length, others.length) }, (_, i) => texts[i] ?? others[i])
    const head =
      'tensor,step,min,max,mean,std,variance,sum,prod,l1,l2,abs_min,abs_max,abs_mean,abs_std,abs_variance,abs_sum,abs_prod,abs_l1,abs_l2'
    writeFileSync(out, `${head}\n${all.join('')}`)
  })
} else parentPort.postMessage(work(piecesOf(workerData.dir), workerData.module, workerData.taken))
