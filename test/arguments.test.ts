/**
 * Arguments of public calls, as plain JavaScript may pass them: what is missing or of another type is refused by a UsageError that says
 * what was expected and what was given. The calls are taken from what is exported, so that none is forgotten.
 */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as trialscan from '#dist/index.js'
import * as kernels from '#dist/kernels.js'
import { fixtureTrial } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const { directory } = fixtureTrial('mlp-vanishing')
const scratch = scratchDirectory('arguments')
const LOSS = 'CrossEntropyLoss_output_0'

class Plain extends trialscan.Rule {
  override invokeAtStep(): boolean {
    return false
  }
}

let trial: trialscan.Trial
let writer: trialscan.TrialWriter
beforeAll(async () => {
  trial = await trialscan.createTrial(directory, { threads: 0, refresh: 'manual' })
  writer = await trialscan.createWriter(join(scratch, 'writer'))
  await writer.step()
})
afterAll(async () => {
  await writer.close()
  await trial.close()
})

// biome-ignore lint/suspicious/noExplicitAny: what plain JavaScript passes
type Call = (...args: any[]) => unknown
/** A call, and arguments that it takes: those that can't be left out. A function makes those that need an open trial. */
type Calls = Readonly<Record<string, readonly [Call, ...unknown[]]>>

const next =
  (call: Call): Call =>
  (...args) =>
    (call(...args) as AsyncGenerator).next()
const OF_TRIAL = () => trial
const array = new Float32Array(2)

const CALLS: Calls = {
  createTrial: [trialscan.createTrial, directory],
  openTrial: [trialscan.openTrial, directory],
  allclose: [trialscan.allclose, array, array],
  callbackAction: [trialscan.callbackAction, () => {}],
  commandAction: [trialscan.commandAction, 'true'],
  compareDigests: [trialscan.compareDigests, OF_TRIAL, ''],
  copyTrial: [trialscan.copyTrial, directory, join(scratch, 'copy')],
  createWriter: [trialscan.createWriter, join(scratch, 'other')],
  debugOutput: [trialscan.debugOutput, 's3://bucket/prefix', 'job'],
  diagnose: [trialscan.diagnose, OF_TRIAL, []],
  diff: [trialscan.diff, OF_TRIAL, OF_TRIAL],
  diffWorkers: [trialscan.diffWorkers, OF_TRIAL],
  embed: [trialscan.embed, [[1], [2]]],
  estimateFleet: [plan => trialscan.estimateFleet(plan, { cores: 1 }), { shards: [] }],
  evaluate: [trialscan.evaluate, () => new Plain(trial)],
  exportTensorBoard: [trialscan.exportTensorBoard, OF_TRIAL, join(scratch, 'runs')],
  findTrials: [trialscan.findTrials, directory],
  fleetStatus: [trialscan.fleetStatus, {}],
  histograms: [tensors => trialscan.histograms(tensors, { out: join(scratch, 'x.gif') }), {}],
  importTensorBoard: [trialscan.importTensorBoard, OF_TRIAL, join(scratch, 'imported')],
  invokeRule: [trialscan.invokeRule, () => new Plain(trial)],
  makeRules: [trialscan.makeRules, []],
  maxThreads: [trialscan.maxThreads, directory],
  mergeMoments: [trialscan.mergeMoments, []],
  mergedTable: [next(trialscan.mergedTable), { reports: () => [] }, { shards: [] }],
  momentsOf: [trialscan.momentsOf, 'float32', new Float64Array(1)],
  noRefresh: [trialscan.noRefresh, OF_TRIAL, () => {}],
  npyChunks: [value => [...trialscan.npyChunks(value)], {}],
  parseActions: [trialscan.parseActions, ''],
  parseColumns: [trialscan.parseColumns, ['mean']],
  parseHookConfig: [trialscan.parseHookConfig, '{}'],
  parseReductions: [trialscan.parseReductions, ['mean']],
  parseRuleConfigurations: [text => trialscan.parseRuleConfigurations(text, 'file:///x'), '[]'],
  parseSteps: [trialscan.parseSteps, '0:10'],
  parseWhere: [trialscan.parseWhere, 'mean > 0'],
  pickleStructure: [trialscan.pickleStructure, 'x.pt'],
  planFleet: [trials => trialscan.planFleet(trials, { version: '0' }), []],
  postAction: [trialscan.postAction, 'http://localhost/'],
  problemLines: [trialscan.problemLines, []],
  readPickle: [trialscan.readPickle, array],
  readValues: [next(trialscan.readValues), OF_TRIAL],
  recordStream: [trialscan.recordStream, [], join(scratch, 'recorded')],
  refresh: [trialscan.refresh, OF_TRIAL],
  reindexTrial: [trialscan.reindexTrial, directory],
  repairTrial: [trialscan.repairTrial, directory, join(scratch, 'repaired')],
  reportHtml: [trialscan.reportHtml, OF_TRIAL],
  runShard: [trialscan.runShard, {}, 0],
  selectSteps: [trialscan.selectSteps, [1, 2], 1],
  serveTrials: [trialscan.serveTrials, directory],
  shardName: [trialscan.shardName, { id: '0', version: '0' }, 0],
  tableBytes: [next(trialscan.tableBytes as Call), () => trial.scan(), 'parquet'],
  tensorboardOutput: [trialscan.tensorboardOutput, 's3://bucket/prefix', 'job'],
  traceNonFinite: [trialscan.traceNonFinite, OF_TRIAL],
  trialFiles: [trialscan.trialFiles, directory],
  trialFingerprint: [trialscan.trialFingerprint, OF_TRIAL],
  trialOverview: [trialscan.trialOverview, OF_TRIAL],
  verifyTrial: [trialscan.verifyTrial, directory],
  'OutputFile.create': [path => trialscan.OutputFile.create(path), join(scratch, 'output')],
  'PlanPlace.open': [place => trialscan.PlanPlace.open(place), scratch],
  'PlanPlace.create': [(place, plan) => trialscan.PlanPlace.create(place, plan), join(scratch, 'plan'), { id: '0' }],
  'Distribution.from': [data => trialscan.Distribution.from(data), {}],
  Diagnosis: [given => new trialscan.Diagnosis(given), OF_TRIAL],
  'scan.lines': [next((format: never) => trial.scan().lines(format)), 'csv'],
  'rule.invoke': [(step: number) => new Plain(trial).invoke(step), 0],
  'reqTensors.add': [(name, steps) => new Plain(trial).reqTensors.add(name, steps), LOSS, [0]],
  'reqTensors.at': [(name, step) => new Plain(trial).reqTensors.at(name, step), LOSS, 0],
  'writer.setMode': [mode => writer.setMode(mode), 'TRAIN'],
  'writer.shouldSave': [name => writer.shouldSave(name), 'a'],
  'writer.save': [(name, value) => writer.save(name, value), 'a', 1],
  'writer.saveReductions': [(name, reductions) => writer.saveReductions(name, reductions), 'a', { mean: 1 }],
  'writer.saveScalar': [(name, value) => writer.saveScalar(name, value), 'b', 1],
  'writer.record': [(step, tensors) => writer.record(step, tensors), 7, { a: 1 }],
}

const KERNELS: Calls = {
  allclose: [kernels.allclose, array, array],
  allocate: [kernels.allocate, 'float32', 2],
  along: [kernels.along, { data: array, shape: [2] }, 'mean', 0],
  crc32c: [kernels.crc32c, new Uint8Array(1)],
  crc32cCombine: [kernels.crc32cCombine, 1, 1, 1],
  decodeEvent: [kernels.decodeEvent, new Uint8Array(1)],
  difference: [kernels.difference, array, array],
  distribution: [kernels.distribution, array],
  histogram: [kernels.histogram, array],
  maskedCrc32c: [kernels.maskedCrc32c, new Uint8Array(1)],
  mergeMoments: [kernels.mergeMoments, []],
  moments: [kernels.moments, array],
  momentsOf: [kernels.momentsOf, 'float32', new Float64Array(1)],
  percentiles: [kernels.percentiles, array, [50]],
  readTFRecords: [next(kernels.readTFRecords as Call), [new Uint8Array(1)]],
  reduce: [kernels.reduce, array, 'mean'],
}

const method = (name: string, ...args: unknown[]): readonly [Call, ...unknown[]] => [
  (...given) => (trial[name as 'tensor'] as Call)(...given),
  ...args,
]
const ofTensor = (name: string, ...args: unknown[]): readonly [Call, ...unknown[]] => [
  (...given) => {
    const tensor = trial.tensor(LOSS)
    return (tensor[name as 'value'] as Call).call(tensor, ...given)
  },
  ...args,
]
const TRIAL: Calls = {
  mode: method('mode', 0),
  modeStep: method('modeStep', 0),
  globalStep: method('globalStep', 'TRAIN', 0),
  collection: method('collection', 'losses'),
  hasTensor: method('hasTensor', LOSS),
  tensor: method('tensor', LOSS),
  distribution: method('distribution', LOSS),
  hasPassedStep: method('hasPassedStep', 0),
  waitForSteps: method('waitForSteps', [0]),
  withoutRefresh: method('withoutRefresh', () => {}),
}
const TENSOR: Calls = {
  value: ofTensor('value', 0),
  reductionValue: ofTensor('reductionValue', 0, 'mean'),
  reductionValues: ofTensor('reductionValues', 0),
  along: ofTensor('along', 0, 'mean', 0),
  shape: ofTensor('shape', 0),
  prevSteps: ofTensor('prevSteps', 0),
}

/** Calls that need no argument but options, which options.test.ts is about; of Tornasole's the test of tornasole. */
const WITHOUT: readonly string[] = ['closePools', 'createWriterFromJson', 'logAction']
const OF_TRIAL_WITHOUT =
  'close collections distribution follow inputs labels modes outputs predictions refresh scan steps summary tensorNames workers workersWithData'
const OF_TENSOR_WITHOUT = 'shapes steps values workers'

const isClass = (value: unknown): boolean => typeof value === 'function' && /^class\b/.test(String(value))
const functionsOf = (module: object): string[] =>
  Object.entries(module).flatMap(([name, value]) => (typeof value === 'function' && !isClass(value) ? [name] : []))
const methodsOf = (one: object): string[] =>
  Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(one))).flatMap(([name, { value }]) =>
    typeof value === 'function' && name !== 'constructor' ? [name] : [],
  )

it('every call is known here', () => {
  const known = Object.keys(CALLS).filter(name => /^[a-z]\w+$/.test(name))
  expect([...known, ...WITHOUT].sort()).toEqual(functionsOf(trialscan).sort())
  expect([...Object.keys(KERNELS), 'createEngine'].sort()).toEqual(functionsOf(kernels).sort())
  const ofTrial = new Set([...Object.keys(TRIAL), ...OF_TRIAL_WITHOUT.split(' ')])
  expect([...ofTrial].sort()).toEqual(methodsOf(trial).sort())
  expect([...Object.keys(TENSOR), ...OF_TENSOR_WITHOUT.split(' ')].sort()).toEqual(methodsOf(trial.tensor(LOSS)).sort())
})

async function thrownBy(call: Call, args: readonly unknown[]): Promise<unknown> {
  try {
    return await call(...args)
  } catch (error) {
    return error
  }
}

describe.each(Object.entries({ '': CALLS, kernels: KERNELS, trial: TRIAL, tensor: TENSOR }))('%s', (_, calls) => {
  it.each(Object.entries(calls))('%s', async (name, [call, ...usual]) => {
    for (const [i, one] of usual.entries()) {
      const args = usual.map((arg, j) => (typeof arg === 'function' && j < i ? (arg as () => unknown)() : arg))
      // An empty Map is an iterable of nothing, and the values of no tensors.
      for (const wrong of [undefined, null, new Date(0), 1.5]) {
        if (typeof wrong === 'number' && typeof one === 'number' && (calls === KERNELS || name.startsWith('writer.')))
          continue
        const error = await thrownBy(call, args.with(i, wrong))
        expect(error, `argument ${i}: ${String(wrong)}`).toBeInstanceOf(trialscan.UsageError)
        expect((error as Error).message).toMatch(/expected .*, got /)
      }
    }
  })
})

it('the message names the argument', async () => {
  const tensor = trial.tensor(LOSS)
  const messageOf = async (call: Call) => String(((await thrownBy(call, [])) as Error).message)
  expect(await messageOf(() => tensor.value('10' as never))).toBe('expected step to be a whole number, got "10"')
  expect(await messageOf(() => (tensor.value as Call)())).toBe('expected step to be a whole number, got none')
  expect(await messageOf(() => tensor.reductionValue('mean' as never, 0 as never))).toBe(
    'expected step to be a whole number, got "mean"',
  )
  expect(await messageOf(() => (tensor.reductionValue as Call)(0))).toBe(
    'tensor.reductionValue: expected name to be the name of a reduction, got none',
  )
  expect(await messageOf(() => trial.scan({ regex: 'loss' } as never))).toBe(
    'trial.scan has no option "regex"; did you mean tensors?',
  )
  expect(await messageOf(() => trial.tensor(7 as never))).toBe('trial.tensor: expected name to be a text, got 7')
})
