/** The order of execution, which is that of the records in the event file. */

import type { WorkerStep } from './worker-steps.js'

/** The order for each `tensors`, which steps share if their index files have the same content. */
const inOrder = new WeakMap<WorkerStep['tensors'], ReadonlyMap<string, number>>()

/** The tensors that a worker saved at a step, each with the rank of its first record. */
export function recordsInOrder({ tensors, eventFile }: WorkerStep): ReadonlyMap<string, number> {
  const cached = inOrder.get(tensors)
  if (cached) return cached
  const files = new Map<string, number>()
  const records = [...tensors].flatMap(([name, { value, reductions }]) => {
    const locations = value === null ? [...reductions.values()] : [value, ...reductions.values()]
    return locations.map(location => {
      const path = location.eventFile ?? eventFile
      const file = files.get(path) ?? files.size
      files.set(path, file)
      return { name, file, startByte: location.startByte }
    })
  })
  records.sort((a, b) => a.file - b.file || a.startByte - b.startByte)
  const places = new Map<string, number>()
  for (const { name } of records) if (!places.has(name)) places.set(name, places.size)
  inOrder.set(tensors, places)
  return places
}
