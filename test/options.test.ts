/**
 * Options of public calls: what a call does not have is refused, with the nearest that it has, and what is of the wrong
 * type. The calls are taken from what is exported, so that none is forgotten.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as trialscan from '#dist/index.js'
import { fixtureTrial, ROOT } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const { createTrial, Rule, UsageError } = trialscan
const { directory } = fixtureTrial('mlp-vanishing')
const scratch = scratchDirectory('options')

class Plain extends Rule {
  override invokeAtStep(): boolean {
    return false
  }
}

let trial: trialscan.Trial
let tensor: trialscan.Tensor
let step: number
let rule: Plain
let plan: trialscan.PlanPlace
beforeAll(async () => {
  trial = await createTrial(directory, { threads: 0 })
  tensor = trial.tensor(trial.tensorNames({ collection: 'gradients' })[0]!)
  step = tensor.steps()[0]!
  rule = new Plain(trial)
  const planned = await trialscan.planFleet([trial], { shards: 1, version: '0' })
  plan = await trialscan.PlanPlace.create(join(scratch, 'plan'), planned)
})
afterAll(async () => {
  await trial.close()
  await plan.close()
})

/** A call with the options, whatever these are. */
type Call = (options: never) => unknown

const at = () => rule.reqTensors.at(tensor.name, step)
/** A value: as plain JavaScript gives it. */
const value = {
  dtype: 'float32',
  shape: [1],
  stride: [1],
  offset: 0,
  data: new Float32Array(1),
  bytes: new Uint8Array(4),
} as const

let writers = 0

/** Every call that takes options, as it calls itself in errors. */
const CALLS: Readonly<Record<string, Call>> = {
  createTrial: options => createTrial(directory, options),
  openTrial: options => trialscan.openTrial(directory, options),
  allclose: options => trialscan.allclose(value, value, options),
  createWriterFromJson: options => {
    const file = join(scratch, `hook-${writers++}.json`)
    writeFileSync(file, JSON.stringify({ LocalPath: join(scratch, `writer-${writers++}`) }))
    return trialscan.createWriterFromJson(file, options)
  },
  recordStream: options => trialscan.recordStream([new Uint8Array(0)], join(scratch, `writer-${writers++}`), options),
  exportTensorBoard: options => trialscan.exportTensorBoard(trial, join(scratch, `runs-${writers++}`), options),
  importTensorBoard: async options => {
    const [logs, out] = [join(scratch, `logs-${writers++}`), join(scratch, `imported-${writers++}`)]
    await trialscan.exportTensorBoard(trial, logs)
    return trialscan.importTensorBoard(await createTrial(logs), out, options)
  },
  createWriter: options => trialscan.createWriter(join(scratch, `writer-${writers++}`), options),
  'OutputFile.create': async options => {
    const file = await trialscan.OutputFile.create(join(scratch, 'output'), options)
    await file.discard()
  },
  evaluate: options => trialscan.evaluate(rule, options),
  invokeRule: options => trialscan.invokeRule(rule, options),
  makeRules: options => trialscan.makeRules([], options),
  logAction: options => trialscan.logAction(options),
  commandAction: options => trialscan.commandAction('true', null, options),
  postAction: options => trialscan.postAction('http://localhost/', options),
  verifyTrial: options => trialscan.verifyTrial(directory, options),
  repairTrial: options => trialscan.repairTrial(directory, join(scratch, 'copy'), options),
  reindexTrial: options => trialscan.reindexTrial(directory, options),
  trialFiles: options => trialscan.trialFiles(directory, options),
  copyTrial: options => trialscan.copyTrial(directory, join(scratch, 'copied'), options),
  readValues: options => trialscan.readValues(trial, options).next(),
  findTrials: options => trialscan.findTrials(directory, options),
  planFleet: options => trialscan.planFleet([trial], options),
  estimateFleet: options => trialscan.estimateFleet(plan.plan, options),
  embed: options => trialscan.embed([[1], [2]], options),
  histograms: options => trialscan.histograms({ a: { 0: [1, 2] } }, options),
  reportHtml: options => trialscan.reportHtml(trial, options),
  compareDigests: options => trialscan.compareDigests(trial, '', options),
  diff: options => trialscan.diff(trial, trial, options),
  diffWorkers: options => trialscan.diffWorkers(trial, options),
  traceNonFinite: options => trialscan.traceNonFinite(trial, options),
  pickleStructure: options =>
    trialscan.pickleStructure(join(ROOT, 'fixtures/checkpoints/torch-2.13/protocol5.pt'), options),
  trialOverview: options => trialscan.trialOverview(trial, options),
  serveTrials: async options => {
    const isGiven = options === undefined || Object.getPrototypeOf(options ?? 0) === Object.prototype
    const free = isGiven ? Object.assign({ port: 0 }, options) : options
    const server = await trialscan.serveTrials(directory, free)
    await server.close()
  },
  runShard: options => trialscan.runShard(plan, 0, options),
  'PlanPlace.open': options => trialscan.PlanPlace.open(join(scratch, 'plan'), options),
  'PlanPlace.create': options => trialscan.PlanPlace.create(join(scratch, 'plan'), plan.plan, options),
  tableBytes: options => trialscan.tableBytes(trial.scan({ steps: { from: 0, to: 1 } }), 'parquet', options).next(),
  'trial.steps': options => trial.steps(options),
  'trial.mode': options => trial.mode(step, options),
  'trial.modeStep': options => trial.modeStep(step, options),
  'trial.globalStep': options => trial.globalStep('GLOBAL', step, options),
  'trial.tensorNames': options => trial.tensorNames(options),
  'trial.inputs': options => trial.inputs(options),
  'trial.outputs': options => trial.outputs(options),
  'trial.labels': options => trial.labels(options),
  'trial.predictions': options => trial.predictions(options),
  'trial.scan': options => trial.scan(options),
  'trial.distribution': options => trial.distribution(tensor.name, options),
  'trial.summary': options => trial.summary(options),
  'trial.waitForSteps': options => trial.waitForSteps([step], options),
  'trial.follow': options => trial.follow(options),
  'tensor.steps': options => tensor.steps(options),
  'tensor.workers': options => tensor.workers(step, options),
  'tensor.value': options => tensor.value(step, options),
  'tensor.values': options => tensor.values(options),
  'tensor.reductionValue': options => tensor.reductionValue(step, 'mean', options),
  'tensor.reductionValues': options => tensor.reductionValues(step, options),
  'tensor.along': options => tensor.along(step, 'mean', 0, options),
  'tensor.shape': options => tensor.shape(step, options),
  'tensor.shapes': options => tensor.shapes(options),
  'rule Plain': options => new Plain(trial, options),
  'rule.collectionConfigs': options => rule.collectionConfigs(options),
  'rule.invoke': options => rule.invoke(step, options),
  'registry.all': options => new trialscan.RuleRegistry().all(trial, options),
  'registry.allInTurns': options => new trialscan.RuleRegistry().allInTurns(trial, options),
  'reqTensors.add': options => rule.reqTensors.add(tensor.name, [step], options),
  'reqTensors.fetch': options => rule.reqTensors.fetch(options),
  'tensorAtStep.allclose': options => at().allclose(at(), options),
  'tensorAtStep.difference': options => at().difference(at(), options),
}

/** Members that take no options: none at all, or only what is told one by one. */
const WITHOUT: Readonly<Record<string, readonly string[]>> = {
  trialscan: [
    'callbackAction',
    'closePools',
    'debugOutput',
    'diagnose',
    'fleetStatus',
    'maxThreads',
    'mergeMoments',
    'mergedTable',
    'momentsOf',
    'noRefresh',
    'npyChunks',
    'parseActions',
    'parseHookConfig',
    'parseColumns',
    'parseReductions',
    'parseSteps',
    'parseWhere',
    'problemLines',
    'readPickle',
    'refresh',
    'selectSteps',
    'shardName',
    'trialFingerprint',
    'parseRuleConfigurations',
    'tensorboardOutput',
  ],
  trial: [
    'availableSteps',
    'close',
    'collection',
    'collections',
    'hasPassedStep',
    'hasTensor',
    'modes',
    'refresh',
    'tensor',
    'tensors',
    'tensorsInCollection',
    'tensorsMatchingRegex',
    'withoutRefresh',
    'workers',
    'workersWithData',
  ],
  tensor: ['prevSteps'],
  scan: ['columns', 'lines'],
}

/** Methods of an object and of the classes that its own extends. */
function methodsOf(object: object): string[] {
  const names = new Set<string>()
  for (let of = Object.getPrototypeOf(object); of !== Object.prototype; of = Object.getPrototypeOf(of)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(of))) {
      if (typeof value === 'function' && name !== 'constructor') names.add(name)
    }
  }
  return [...names].sort()
}

const isClass = (value: unknown): boolean => typeof value === 'function' && /^class\b/.test(String(value))

it('every exported call is known here', () => {
  const functions = Object.entries(trialscan).filter(([, value]) => typeof value === 'function' && !isClass(value))
  const classes = Object.entries(trialscan).filter(([, value]) => isClass(value))
  // Nobody makes errors but us. Rules take what `parameters` say besides, and have tests of their own for that.
  const others = classes
    .map(([, value]) => value as unknown as new () => unknown)
    .filter(value => !(value.prototype instanceof Error) && !(value.prototype instanceof Rule))
    .map(({ name }) => name)
  expect(others.sort()).toEqual([
    'Diagnosis',
    'DifferenceTable',
    'Distribution',
    'Moments',
    'OutputFile',
    'PlanPlace',
    'Rule',
    'RuleRegistry',
    'TrialWriter',
  ])
  const known = [
    ...Object.keys(CALLS).filter(name => !name.includes('.') && name !== 'rule Plain'),
    ...WITHOUT.trialscan!,
  ]
  expect(functions.map(([name]) => name).sort()).toEqual(known.sort())
})

it.each(['trial', 'tensor', 'scan'] as const)('every method of a %s is known here', of => {
  const own = Object.keys(CALLS).filter(name => name.startsWith(`${of}.`))
  const known = [...own.map(name => name.slice(of.length + 1)), ...WITHOUT[of]!]
  expect(methodsOf({ trial, tensor, scan: trial.scan() }[of]).sort()).toEqual(known.sort())
})

it('every method of rules and what they ask that takes options is known here', () => {
  const objects = { rule, registry: new trialscan.RuleRegistry(), reqTensors: rule.reqTensors, tensorAtStep: at() }
  for (const [of, object] of Object.entries(objects)) {
    const methods = methodsOf(object).filter(name => {
      const [, parameters] = /^[^(]*\(([^{]*?(?:\{|\)))/.exec(String(object[name as keyof typeof object]))!
      return name !== 'finding' && /options|\{$/.test(parameters!)
    })
    const known = Object.keys(CALLS).filter(name => name.startsWith(`${of}.`))
    expect(methods.map(name => `${of}.${name}`)).toEqual(known.sort())
  }
})

async function refusal(call: Call, options: unknown): Promise<string> {
  let error: unknown
  try {
    await call(options as never)
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(UsageError)
  return (error as Error).message
}

describe.each(Object.entries(CALLS))('%s', (name, call) => {
  const called = name === 'openTrial' ? 'createTrial' : name

  /** What it takes, as it says itself. */
  const options = async (): Promise<string[]> => {
    const [, list] = /; it takes \{ (.*) \}$/.exec(await refusal(call, 'nonsense'))!
    return list!.split(', ')
  }

  it('refuses an option it does not have, and what is none', async () => {
    const known = await options()
    expect(known.length).toBeGreaterThan(0)
    expect(await refusal(call, { nonsense: 1 })).toMatch(`${called} has no option "nonsense"; `)
    for (const none of ['nonsense', 5, null, [], new Map([['threads', 1]]), true, () => ({})]) {
      expect(await refusal(call, none)).toMatch(`${called}: expected options in an object, got `)
    }
    if (!known.includes('mode')) return
    expect(await refusal(call, 'EVAL')).toBe(
      `${called}: expected options in an object, got "EVAL"; write { mode: 'EVAL' }`,
    )
  })

  it('names the nearest of a mistyped one', async () => {
    for (const option of await options()) {
      const snake = option.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
      for (const slip of [snake === option ? `${option}x` : snake, option.replace(/^(.)(.)/, '$2$1')]) {
        expect(await refusal(call, { [slip]: 1 })).toMatch(
          new RegExp(`^${called} has no option "${slip}"; (did you mean (\\w+ or )*${option}\\b|it takes)`),
        )
      }
    }
  })

  it('refuses each of them where it is of another type', async () => {
    for (const option of await options()) {
      const message = await refusal(call, { [option]: new Map() })
      expect(message).toMatch(new RegExp(`expected ${option}\\b|^${option}: expected |: expected \\w+, got none`))
      expect(message).toMatch(/, got (a Map|none|an object|a value of type object)/)
    }
  })
})

describe('options that have no effect', () => {
  const s3 = 's3://bucket/prefix'
  const openers = {
    createTrial: (path: string, options: object) => createTrial(path, options),
    verifyTrial: (path: string, options: object) => trialscan.verifyTrial(path, options),
    reindexTrial: (path: string, options: object) => trialscan.reindexTrial(path, options),
    repairTrial: (path: string, options: object) => trialscan.repairTrial(path, join(scratch, 'never'), options),
  }

  it.each(Object.entries(openers))('%s: on S3, or on disk', async (_, open) => {
    for (const place of [directory, pathToFileURL(directory).href]) {
      for (const [name, value] of Object.entries({
        endpoint: 'http://x',
        region: 'r',
        maxSockets: 1,
        cacheDirectory: 'c',
      })) {
        expect(await refusal(options => open(place, options), { s3: { [name]: value } })).toBe(
          `expected s3.${name} for a trial at s3://bucket/prefix only, got it for ${place}`,
        )
      }
    }
    expect(await refusal(options => open(s3, options), { allowSymlinks: true })).toBe(
      `expected allowSymlinks for a trial on disk only, since S3 has no links, got it for ${s3}`,
    )
    expect(await refusal(options => open(s3, options), { s3: { cacheByteLength: 1 } })).toBe(
      'expected s3.cacheDirectory beside s3.cacheByteLength, which is of that cache, got none',
    )
  })

  it('what says nothing is none of them', async () => {
    const opened = await createTrial(directory, { s3: {}, allowSymlinks: true })
    await opened.close()
    // What is not there on S3 is not followed, as was asked.
    const s3Options = { endpoint: 'http://127.0.0.1:1', anonymous: true, maxAttempts: 1 }
    await expect(createTrial(s3, { allowSymlinks: false, s3: s3Options })).rejects.toMatchObject({ name: 'StoreError' })
  })

  it('timeoutMs and pollMs of an evaluation that does not wait', async () => {
    for (const option of ['timeoutMs', 'pollMs']) {
      expect(await refusal(CALLS.evaluate!, { [option]: 5 })).toBe(
        `evaluate: expected follow: true beside ${option}: nothing else waits`,
      )
    }
    await CALLS.evaluate!({ timeoutMs: undefined } as never)
  })

  it('unfoldLimit, where no value is handed out', async () => {
    for (const call of ['tensor.reductionValue', 'tensor.reductionValues', 'tensor.shape', 'tensor.shapes']) {
      expect(await refusal(CALLS[call]!, { unfoldLimit: 1 })).toMatch(`${call} has no option "unfoldLimit"; it takes `)
    }
  })
})

it('`check` and `cache`, which options were once called, are unknown', async () => {
  expect(await refusal(CALLS['trial.scan']!, { check: 'full' })).toMatch('trial.scan has no option "check"')
  expect(await refusal(CALLS.createTrial!, { cache: 'index' })).toMatch('createTrial has no option "cache"')
})

describe('options', () => {
  it('are said in the words of what is asked for', async () => {
    expect(await refusal(CALLS.createTrial!, { range_steps: [0, 1] })).toBe(
      'createTrial has no option "range_steps"; did you mean rangeSteps?',
    )
    expect(await refusal(CALLS.createTrial!, { rangeSteps: [5, 5] })).toBe(
      'createTrial: expected rangeSteps to be [begin, end] with 0 ≤ begin < end, each a whole number or null, got [5,5]',
    )
    expect(await refusal(CALLS.createTrial!, { s3: { maxSocket: 1 } })).toBe(
      'createTrial has no option "s3.maxSocket"; did you mean maxSockets?',
    )
    expect(await refusal(CALLS['trial.scan']!, { threads: 1.5 })).toBe(
      'trial.scan: expected threads to be a number of threads from 0 to 1024, got 1.5',
    )
    expect(await refusal(CALLS['trial.scan']!, { workers: ['worker_0', 1] })).toBe(
      'trial.scan: expected workers to be the name of a worker, or an array of such, got ["worker_0",1]',
    )
    expect(await refusal(() => (trial.tensors as Call)({ collection: 'gradients' } as never), null)).toBe(
      'trial.tensors: expected no options, got {"collection":"gradients"}; write trial.tensorNames({ … })',
    )
  })

  it('of S3 are not shown: they may be secret', async () => {
    const told = await refusal(CALLS.createTrial!, {
      s3: { credentials: { accessKeyId: 'id', secretAccessKey: ['xyzzy'] } },
    })
    expect(told).not.toMatch('xyzzy')
    expect(await refusal(CALLS.createTrial!, { s3: { anonymous: 'xyzzy' } })).not.toMatch('xyzzy')
  })

  it('can be undefined, as where they are handed on', async () => {
    for (const [name, call] of Object.entries(CALLS)) {
      // These take what can't be left out.
      const needs = [
        'evaluate',
        'invokeRule',
        'makeRules',
        'verifyTrial',
        'planFleet',
        'estimateFleet',
        'runShard',
        'histograms',
      ]
      if (needs.includes(name)) continue
      await call(undefined as never)
    }
    const known = ['mode', 'worker', 'checkLevel', 'threads', 'memory', 'unfoldLimit']
    const options = Object.fromEntries(known.map(name => [name, undefined]))
    expect(await tensor.value(step, options)).toEqual(await tensor.value(step))
  })
})
