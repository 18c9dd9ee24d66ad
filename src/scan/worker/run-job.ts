/** The function for each kind of job. */

import type { Engine } from '../../core/engine.js'
import type { Store, StoreSpec } from '../../storage/store.js'
import type { Job, Reply } from '../job/job.js'
import { measure } from './measure-records.js'
import { describe } from './read-descriptions.js'
import { readIndexFiles } from './read-index.js'
import { readValues } from './read-values.js'
import { reducePart, scan } from './reduce.js'
import { reduceArrays } from './reduce-arrays.js'

/** Runs a job on this thread's engine. Modules that few commands need are loaded with their first job. */
export function runJob(job: Job, engine: Engine, storeOf: (spec: StoreSpec) => Store): Reply | Promise<Reply> {
  if (job.kind === 'measure') return measure(job, engine, job.stores.map(storeOf))
  if (job.kind === 'quantised') {
    return import('./pairs/quantised-pairs.js').then(({ compareQuantised }) =>
      compareQuantised(job, engine, job.stores.map(storeOf)),
    )
  }
  if (job.kind === 'arrays') return reduceArrays(job, engine)
  const store = storeOf(job.store)
  switch (job.kind) {
    case 'scan':
      return scan(job, engine, store)
    case 'part':
      return reducePart(job, engine, store)
    case 'describe':
      return describe(job, engine, store)
    case 'value':
      return readValues(job, engine, store)
    case 'index':
      return readIndexFiles(job, store)
    case 'survey':
      return import('./survey.js').then(({ surveyEventFiles }) => surveyEventFiles(job, engine, store))
    case 'copy':
      return import('./copy-records.js').then(({ copyRecords }) => copyRecords(job, engine, store))
    case 'verify':
      return import('./verify/verify.js').then(({ verifyEventFiles }) => verifyEventFiles(job, engine, store))
  }
}
