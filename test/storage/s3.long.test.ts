/** Trials on a real S3 server (Ceph's radosgw): the same answers as from disk, and what they cost in requests. */

import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  AllZero,
  createTrial,
  createWriter,
  evaluate,
  findTrials,
  SimilarAcrossRuns,
  type Trial,
  type TrialOptions,
  type TrialWriter,
  UnchangedTensor,
  VanishingGradient,
  verifyTrial,
} from '#dist/index.js'
import { openStore, storeSpec } from '#dist/storage/open.js'
import { CLI } from '../cli/run.js'
import { fixtureTrial, fixtureTrials, sharedTrials } from '../support/golden.js'
import { CREDENTIALS, ENDPOINT, ENVIRONMENT, HAS_S3, makeBucket, OPTIONS, put, upload } from '../support/s3.js'
import { scratchDirectory } from '../support/scratch.js'

const run = promisify(execFile)
const scratch = scratchDirectory('s3')
const trials = [...sharedTrials(), ...fixtureTrials().filter(({ directory }) => directory.includes('generated'))]
let bucket: string

beforeAll(async () => {
  if (!HAS_S3) return
  if (ENDPOINT === undefined) throw new Error('expected an S3 server at TRIALSCAN_S3, which TRIALSCAN_REQUIRE asks for')
  bucket = await makeBucket()
  for (const { name, directory } of trials) await upload(directory, bucket, `trials/${name}/`)
})

function open(name: string, options: TrialOptions = {}): Promise<Trial> {
  return createTrial(`s3://${bucket}/trials/${name}`, {
    requireCollections: false,
    ...options,
    s3: { ...OPTIONS, ...options.s3 },
  })
}

async function rowsOf(trial: Trial, options: Parameters<Trial['scan']>[0] = {}): Promise<string> {
  const lines: Uint8Array[] = []
  for await (const text of trial.scan({ checkLevel: 'full', ...options }).lines('jsonl')) lines.push(text)
  return Buffer.concat(lines).toString()
}

/** Requests of the trial that `work` makes. */
async function cost(trial: Trial, work: () => Promise<unknown>) {
  const before = trial.traffic
  await work()
  const { listRequests, getRequests, receivedBytes } = trial.traffic
  return {
    lists: listRequests - before.listRequests,
    gets: getRequests - before.getRequests,
    bytes: receivedBytes - before.receivedBytes,
  }
}

function trialscan(...args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const maxBuffer = 64 << 20
  return run(process.execPath, [CLI, ...args], { env: { ...process.env, ...ENVIRONMENT }, maxBuffer }).catch(error => {
    // Findings, and files that can't be read, are exit codes.
    if (typeof error.code !== 'number') throw error
    return error
  })
}

describe.runIf(HAS_S3)('every trial gives what it gives on disk', () => {
  it.each(trials)('$name', async ({ name, directory }) => {
    const [local, remote] = [await createTrial(directory, { requireCollections: false }), await open(name)]
    const same = (text: string) => text.replaceAll(`s3://${bucket}/trials/${name}`, `file://${directory}`)
    expect(same(await rowsOf(remote))).toBe(await rowsOf(local))
    expect(await rowsOf(remote, { threads: 2 })).toBe(await rowsOf(remote))
    expect(same(JSON.stringify(await remote.summary()))).toBe(JSON.stringify(await local.summary()))
    expect(remote.steps({ showIncompleteSteps: true })).toEqual(local.steps({ showIncompleteSteps: true }))
    expect([...remote.collections().keys()]).toEqual([...local.collections().keys()])
    for (const tensor of local.tensorNames().slice(0, 3)) {
      const all = async (trial: Trial) => {
        const steps = trial.tensor(tensor).steps()
        const values = await Promise.allSettled(steps.map(step => trial.tensor(tensor).value(step)))
        return values.map(settled =>
          settled.status === 'fulfilled' ? { ...settled.value, data: null } : settled.reason.code,
        )
      }
      expect(await all(remote)).toEqual(await all(local))
    }
  })
})

describe.runIf(HAS_S3)('the command line gives what it gives on disk', () => {
  const s3 = ['--s3-force-path-style']

  it.each(trials)('$name', async ({ name, directory }) => {
    const url = `s3://${bucket}/trials/${name}`
    const tensor = (await createTrial(directory, { requireCollections: false })).tensorNames()[0]!
    const first = (await createTrial(directory, { requireCollections: false }))
      .tensor(tensor)
      .steps({ showIncompleteSteps: true })[0]!
    for (const args of [
      ['ls', '--json'],
      ['scan', '--format', 'csv'],
      ['show', tensor, '--step', String(first)],
      ['check', '--format', 'jsonl'],
    ]) {
      const [command, ...rest] = args as [string, ...string[]]
      const positional = command === 'show' ? [rest.shift()!] : []
      const [local, remote] = await Promise.all([
        trialscan(command, directory, ...positional, ...rest),
        trialscan(command, url, ...positional, ...rest, ...s3),
      ])
      const same = (text: string) => text.replaceAll(url, directory).replaceAll(`file://${directory}`, directory)
      expect(same(remote.stdout)).toBe(same(local.stdout))
      expect(same(remote.stderr)).toBe(same(local.stderr))
    }
  })

  it('on threads, too, each of which loads the SDK', async () => {
    const { directory } = trials.find(({ name }) => name === 'mlp-vanishing')!
    const args = ['--format', 'csv', '--threads', '2', '--stats']
    const [local, remote] = await Promise.all([
      trialscan('scan', directory, ...args),
      trialscan('scan', `s3://${bucket}/trials/mlp-vanishing`, ...args, ...s3),
    ])
    expect(remote.stdout).toBe(local.stdout)
    expect(remote.stderr).toMatch(/threads 2,.* failed rows 0,/)
  })

  it('--stats tells requests and bytes', async () => {
    const { stderr } = await trialscan('scan', `s3://${bucket}/trials/mlp-vanishing`, ...s3, '--stats')
    expect(stderr).toMatch(/list requests 3, get requests 31, retries 0, bytes received 3,\d{3},\d{3}/)
  })

  it('bench says where the time of a scan goes', async () => {
    const url = `s3://${bucket}/trials/mlp-vanishing`
    const { stdout, stderr } = await trialscan('bench', url, '--json', ...s3)
    expect(stderr).toBe('')
    const { directory } = trials.find(({ name }) => name === 'mlp-vanishing')!
    const { stdout: here } = await trialscan('bench', directory, '--json')
    const result = JSON.parse(stdout)
    const { tensors, records, bytes } = JSON.parse(here)
    expect(result).toMatchObject({ trial: url, tensors, records, failedRows: 0, pageCacheRate: null, diskRate: null })
    expect(result.bytes).toBe(bytes)
    expect(result.notMeasured).toBe('the trial is not on a disk of this machine')
    expect(result.spentSeconds.read).toBeGreaterThan(0)
  })

  it('says what is wrong, and exits with 3', async () => {
    const failed = await trialscan('ls', `s3://${bucket}/nothing`, ...s3)
    expect(failed).toMatchObject({ code: 3, stdout: '' })
    expect(failed.stderr).toContain('no key begins with it')
  })
})

describe.runIf(HAS_S3)('requests', () => {
  it('opening: three listings, each index and collections file once', async () => {
    const trial = await open('mlp-vanishing')
    expect(trial.traffic).toMatchObject({ listRequests: 3, getRequests: 16, retries: 0 })
  })

  it('scanning all: one for each event file that is not longer than a part', async () => {
    const trial = await open('mlp-vanishing')
    const { byteLength } = await trial.summary()
    const { lists, gets, bytes } = await cost(trial, () => rowsOf(trial))
    expect({ lists, gets }).toEqual({ lists: 0, gets: 15 })
    expect(bytes).toBeGreaterThanOrEqual(byteLength)
    expect(bytes).toBeLessThan(byteLength * 1.1)
    const cut = await open('mlp-vanishing', { s3: { partByteLength: 64 << 10 } })
    expect((await cost(cut, () => rowsOf(cut))).gets).toBeGreaterThan(30)
  })

  it('scanning one reduction of one collection: one for each step that has it, few bytes', async () => {
    const trial = await open('mlp-vanishing')
    const steps = trial.steps().length
    const asked = { collection: 'losses', reductions: ['mean'] } as const
    expect(await rowsOf(trial, asked)).toContain('"mean"')
    const spent = await cost(trial, () => rowsOf(trial, asked))
    expect(spent.gets).toBeLessThanOrEqual(steps)
    expect(spent.bytes).toBeLessThan(steps * 2000)
    expect(spent.lists).toBe(0)
  })

  it('one value: one', async () => {
    const trial = await open('mlp-vanishing')
    const tensor = trial.tensor(trial.tensorNames({ collection: 'gradients' })[0]!)
    const step = tensor.steps()[0]!
    expect(await cost(trial, () => tensor.value(step))).toMatchObject({ lists: 0, gets: 1 })
  })

  it('rules share what they read', async () => {
    const trial = await open('mlp-vanishing')
    const rules = [
      new VanishingGradient(trial),
      new UnchangedTensor(trial, { tensor_regex: '.*' }),
      new AllZero(trial, { tensor_regex: '.*' }),
    ]
    const { lists, gets } = await cost(trial, () => evaluate(rules, { follow: false }))
    expect(lists).toBe(0)
    expect(gets).toBeLessThanOrEqual(20)
  })

  it('rules compare a trial on S3 with one on disk', async () => {
    const [remote, other] = [await open('mlp-vanishing'), await open('mlp-all-zero')]
    const onDisk = (name: string) => createTrial(trials.find(trial => trial.name === name)!.directory)
    const [local, localOther] = [await onDisk('mlp-vanishing'), await onDisk('mlp-all-zero')]
    const findings = async (a: Trial, b: Trial) =>
      (await evaluate(new SimilarAcrossRuns(a, { otherTrials: [b], tensor_regex: '.*' }), { follow: false })).findings
    const expected = await findings(local, localOther)
    for (const [a, b] of [
      [remote, localOther],
      [local, other],
      [remote, other],
    ] as const) {
      expect(await findings(a, b)).toEqual(expected)
    }
  })
})

describe.runIf(HAS_S3)('a running trial', () => {
  const { directory } = fixtureTrial('workers-4')
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(path =>
    statSync(join(directory, path)).isFile(),
  )
  const indexFiles = files.filter(path => path.startsWith('index/')).sort()
  const send = (prefix: string, paths: readonly string[]) =>
    Promise.all(paths.map(path => put(bucket, `${prefix}/${path}`, readFileSync(join(directory, path)))))
  const stepOf = (path: string) => Number(/(\d+)_[^/]*$/.exec(path)![1])

  it('is followed by two listings a look; late files of slow workers are found', async () => {
    const steps = [...new Set(indexFiles.map(stepOf))]
    const late = indexFiles.filter(path => path.includes('worker_3'))
    await send(
      'live',
      files.filter(path => path.startsWith('events/') || path.startsWith('collections/')),
    )
    await send(
      'live',
      indexFiles.filter(path => stepOf(path) < steps[2]! && !late.includes(path)),
    )
    const trial = await createTrial(`s3://${bucket}/live`, { s3: OPTIONS, refresh: 'manual' })
    expect(trial.steps()).toEqual([])
    expect(await cost(trial, () => trial.refresh())).toMatchObject({ lists: 2, gets: 0 })
    await send(
      'live',
      indexFiles.filter(path => stepOf(path) < steps[3]! && !late.includes(path)),
    )
    const news = await cost(trial, () => trial.refresh())
    expect(news).toMatchObject({ lists: 3, gets: 3 })
    await send(
      'live',
      late.filter(path => stepOf(path) < steps[3]!),
    )
    expect(await trial.refresh()).toBe(true)
    expect(trial.steps()).toEqual(steps.slice(0, 3))
    const followed: number[] = []
    const rest = send(
      'live',
      indexFiles.filter(path => stepOf(path) >= steps[3]!),
    ).then(() => put(bucket, 'live/training_job_end.ts', ''))
    const following = await cost(trial, async () => {
      for await (const step of trial.follow({ pollMs: 0, timeoutMs: 20_000 })) followed.push(step)
    })
    await rest
    expect(followed).toEqual(steps)
    // Looked at four times a second at the most, whatever was asked for.
    expect(following.lists).toBeLessThan(20)
    expect(following.gets).toBe(indexFiles.filter(path => stepOf(path) >= steps[3]!).length)
  })

  it('of thousands of files, lists a page', async () => {
    const made = join(scratch, 'many')
    const store = openStore(storeSpec(`s3://${bucket}/pages`, { s3: OPTIONS }))
    mkdirSync(made)
    for (let i = 0; i < 1205; i++) writeFileSync(join(made, `${String(i).padStart(12, '0')}_worker_0.json`), '')
    await upload(made, bucket, 'pages/index/000000000/')
    const all = await store.list('index', { recursive: true })
    expect(all).toHaveLength(1205)
    expect(await store.list('index', { recursive: true, after: 'index/000000000/000000001200' })).toEqual(
      all.slice(1200),
    )
    expect(await store.list('index')).toEqual([])
    expect(await store.list('index/000000000')).toEqual(all)
  })
})

describe.runIf(HAS_S3)('access', () => {
  it('keys with anything in them', async () => {
    const path = 'events/a b+c&é%2F<">\'/ü\u0001'
    await put(bucket, `odd dir/x y/${path}`, 'hello')
    const store = openStore(storeSpec(`s3://${bucket}/odd dir/x y/`, { s3: OPTIONS }))
    expect(await store.list('', { recursive: true })).toEqual([path])
    // The first of them is the SDK's request, the second one of ours.
    for (let i = 0; i < 2; i++) {
      expect(Buffer.from(await store.read(path, { maxByteLength: 5 })).toString()).toBe('hello')
    }
    expect(await store.exists(path)).toBe(true)
    expect(await store.exists('events')).toBe(false)
    expect([...(await store.stamps([path])).slice(0, 1)]).toEqual([5])
  })

  it('public buckets without credentials', async () => {
    const open = await makeBucket({ isPublic: true })
    await upload(fixtureTrial('mlp-all-zero').directory, open, 'p/', { isPublic: true })
    const { credentials: _, ...s3 } = OPTIONS
    const trial = await createTrial(`s3://${open}/p`, { s3: { ...s3, anonymous: true } })
    expect(await rowsOf(trial)).toContain('"tensor"')
    await expect(createTrial(`s3://${bucket}/trials/dtypes`, { s3: { ...s3, anonymous: true } })).rejects.toMatchObject(
      {
        name: 'StoreError',
        code: 'Denied',
      },
    )
  })

  it("somebody else's bucket", async () => {
    const s3 = { ...OPTIONS, credentials: { accessKeyId: 'AKOTHER', secretAccessKey: 'SKOTHER' } }
    await expect(createTrial(`s3://${bucket}/trials/dtypes`, { s3 })).rejects.toMatchObject({ code: 'Denied' })
    const wrong = { ...OPTIONS, credentials: { ...CREDENTIALS, secretAccessKey: 'nonsense' } }
    await expect(createTrial(`s3://${bucket}/trials/dtypes`, { s3: wrong })).rejects.toMatchObject({
      code: 'Denied',
      fields: { s3: 'SignatureDoesNotMatch' },
    })
  })

  it('no credentials at all, without a word of secrets', async () => {
    const env = { ...process.env, AWS_EC2_METADATA_DISABLED: 'true', AWS_ENDPOINT_URL_S3: ENDPOINT, HOME: scratch }
    const failed = await run(process.execPath, [CLI, 'ls', `s3://${bucket}/trials/dtypes`], { env }).catch(
      error => error,
    )
    expect(failed).toMatchObject({ code: 3 })
    expect(failed.stderr).toContain('no credentials: set AWS_ACCESS_KEY_ID')
  })
})

describe.runIf(HAS_S3)('the cache', () => {
  const cached = (cacheDirectory: string, cacheByteLength = 1 << 30) => ({ s3: { cacheDirectory, cacheByteLength } })
  const entries = (directory: string) =>
    readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(path =>
      statSync(join(directory, path)).isFile(),
    )

  it.each(['mlp-vanishing', 'workers-4', 'tornasole-2019'])(
    'a second scan of %s makes only list requests',
    async name => {
      const directory = join(scratch, `cache-${name}`)
      const plain = await rowsOf(await open(name))
      const first = await open(name, cached(directory))
      expect(await rowsOf(first)).toBe(plain)
      const second = await open(name, cached(directory))
      expect(await rowsOf(second)).toBe(plain)
      expect(second.traffic.getRequests).toBe(0)
      expect(second.traffic.listRequests).toBeLessThanOrEqual(5)
      expect(await rowsOf(await open(name, cached(directory)), { threads: 2 })).toBe(plain)
    },
  )

  it('one value of it costs one listing of its file, not of all', async () => {
    const directory = join(scratch, 'cache-one')
    const values = async () => {
      const trial = await open('mlp-vanishing', cached(directory))
      const tensor = trial.tensor(trial.tensorNames()[0]!)
      return cost(trial, () => tensor.value(tensor.steps()[0]!))
    }
    expect(await values()).toMatchObject({ lists: 1, gets: 1 })
    expect(await values()).toMatchObject({ lists: 1, gets: 0, bytes: 0 })
  })

  it('is kept by ETag: a trial that was replaced is read anew', async () => {
    const directory = join(scratch, 'cache-etag')
    const path = `s3://${bucket}/replaced`
    const s3 = { ...OPTIONS, cacheDirectory: directory }
    await upload(fixtureTrial('dtypes').directory, bucket, 'replaced/')
    const before = await rowsOf(await createTrial(path, { s3 }))
    await upload(fixtureTrial('mlp-all-zero').directory, bucket, 'replaced/')
    const now = await createTrial(path, { s3, requireCollections: false })
    expect(await rowsOf(now)).not.toBe(before)
    expect(now.traffic.getRequests).toBeGreaterThan(0)
  })

  it('a crash in the middle costs an entry, never a wrong byte', async () => {
    const directory = join(scratch, 'cache-crash')
    const plain = await rowsOf(await open('dtypes', cached(directory)))
    for (const [i, path] of entries(directory).entries()) {
      const file = join(directory, path)
      const { size } = statSync(file)
      if (i % 3 === 0) truncateSync(file, Math.floor(size / 2))
      else if (i % 3 === 1) writeFileSync(file, Buffer.alloc(size))
    }
    expect(await rowsOf(await open('dtypes', cached(directory)))).toBe(plain)
  })

  it('stays within its bound, and keeps what was used last', async () => {
    const directory = join(scratch, 'cache-bound')
    const bound = 2 << 20
    for (const name of ['mlp-vanishing', 'dtypes', 'mlp-all-zero']) {
      const plain = await rowsOf(await open(name))
      expect(await rowsOf(await open(name, cached(directory, bound)))).toBe(plain)
    }
    const total = entries(directory).reduce((sum, path) => sum + statSync(join(directory, path)).size, 0)
    expect(total).toBeLessThanOrEqual(bound)
    const again = await open('mlp-all-zero', cached(directory, bound))
    await rowsOf(again)
    expect(again.traffic.getRequests).toBe(0)
  })

  it('is shared by two processes at once', async () => {
    const directory = join(scratch, 'cache-two')
    const args = ['scan', `s3://${bucket}/trials/mlp-vanishing`, '--s3-force-path-style', '--s3-cache', directory]
    const [a, b] = await Promise.all([trialscan(...args), trialscan(...args)])
    expect(a.stdout).toBe(b.stdout)
    expect(a.stdout.length).toBeGreaterThan(1000)
    expect(entries(directory).filter(path => path.endsWith('.tmp'))).toEqual([])
    const { stderr } = await trialscan(...args, '--stats')
    expect(stderr).toMatch(/get requests 0,/)
  })

  it('that can not be had is told at once', async () => {
    const file = join(scratch, 'a-file')
    writeFileSync(file, '')
    await expect(open('dtypes', cached(file))).rejects.toMatchObject({ name: 'StoreError', code: 'Unavailable' })
  })
})

describe('s3:// URLs', () => {
  it('name a bucket and a prefix, as they are', () => {
    const spec = (url: string) => storeSpec(url)
    expect(spec('s3://bucket')).toEqual({ kind: 's3', bucket: 'bucket', prefix: '', options: {} })
    expect(spec('S3://bucket//a%20b/c/')).toMatchObject({ bucket: 'bucket', prefix: 'a%20b/c/' })
    expect(openStore(spec('s3://bucket/a')).url('b c')).toBe('s3://bucket/a/b c')
  })

  it.each(['s3://', 's3:///x', 's3://b/x', 's3://a_b c/x'])('refuses %j', url => {
    expect(() => storeSpec(url)).toThrow(expect.objectContaining({ name: 'UsageError' }))
  })

  it.each([
    { maxSockets: 0 },
    { partByteLength: 10 },
    { region: 7 },
    { nonsense: 1 },
    { endpoint: 'ftp://x' },
    { anonymous: true, credentials: CREDENTIALS },
  ])('refuses the options %j', async s3 => {
    const opened = createTrial('s3://bucket/x', { s3: s3 as object })
    await expect(opened).rejects.toMatchObject({ name: 'UsageError', message: expect.stringContaining('s3.') })
  })
})

it('nothing of the SDK is loaded for a trial on disk', async () => {
  const script = `
    const { createTrial } = await import(${JSON.stringify(new URL('../../dist/bundle/index.js', import.meta.url).href)})
    const trial = await createTrial(${JSON.stringify(fixtureTrial('mlp-all-zero').directory)})
    for await (const _ of trial.scan());`
  const coverage = mkdtempSync(join(scratch, 'loaded-'))
  const env = { ...process.env, NODE_V8_COVERAGE: coverage }
  await run(process.execPath, ['--input-type=module', '-e', script], { env })
  const loaded = readdirSync(coverage)
    .map(file => readFileSync(join(coverage, file), 'utf8'))
    .join('')
  expect(loaded).toContain('dist/bundle/index.js')
  expect(loaded).not.toContain('aws-sdk')
})

describe.runIf(HAS_S3)('several trials', () => {
  const runs = () => `s3://${bucket}/runs`
  const fixture = fixtureTrials().find(({ name }) => name === 'mlp-all-zero')!.directory

  beforeAll(async () => {
    for (const name of ['2024/a', '2024/b', 'c']) await upload(fixture, bucket, `runs/${name}/`)
    await put(bucket, 'runs/notes.txt', Buffer.from('no trial'))
  })

  it('are found below a prefix, and by a pattern', async () => {
    const found = (place: string) => findTrials(place, { s3: OPTIONS })
    expect(await found(runs())).toEqual(['2024/a', '2024/b', 'c'].map(name => `${runs()}/${name}`))
    expect(await found(`${runs()}/20*/b`)).toEqual([`${runs()}/2024/b`])
    expect(await found(`${runs()}/c`)).toEqual([`${runs()}/c`])
    await expect(found(`${runs()}/z*`)).rejects.toThrow('no trial matches it')
  })

  it('are scanned into one table, as those on disk are', async () => {
    const remote = await trialscan('scan', runs(), '--reductions', 'mean', '--format', 'csv')
    const local = await trialscan('scan', fixture, '--reductions', 'mean', '--format', 'csv')
    const [head, ...rows] = local.stdout.trimEnd().split('\n')
    const all = ['2024/a', '2024/b', 'c'].flatMap(name => rows.map(row => `${runs()}/${name},${row}`))
    expect(remote.stdout.trimEnd().split('\n')).toEqual([`trial,${head}`, ...all])
  })

  it('go on with --resume, unless their files have changed', async () => {
    const out = join(scratch, 'tables/')
    const scan = () => trialscan('scan', runs(), '--reductions', 'mean', '--out', out, '--resume')
    expect((await scan()).stderr).toContain('0 of 3 trials had been scanned before')
    expect((await scan()).stderr).toContain('3 of 3 trials had been scanned before')
    const index = readdirSync(join(fixture, 'index/000000000'))[0]!
    await put(bucket, `runs/c/index/000000000/${index}`, readFileSync(join(fixture, 'index/000000000', index)))
    expect((await scan()).stderr).toContain('2 of 3 trials had been scanned before')
  })
})

describe.runIf(HAS_S3)('a trial written to S3', () => {
  it('is what it is on disk, and its worker has it alone', async () => {
    const place = `s3://${bucket}/written/one`
    const options = { s3: OPTIONS, saveConfig: { saveInterval: 1 }, checksums: true, fsync: 'step' } as const
    const tries = await Promise.allSettled([createWriter(place, options), createWriter(place, options)])
    const writers = tries.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
    expect(writers.length).toBe(1)
    const [writer] = writers as [TrialWriter]
    for (let step = 0; step < 3; step++) {
      await writer.step()
      await writer.save('long', new Float32Array(1 << 20).fill(step))
      await writer.save('short', step, { collection: 'mine' })
    }
    await writer.close()
    const trial = await createTrial(place, { s3: OPTIONS })
    expect(trial.steps()).toEqual([0, 1, 2])
    expect(trial.loadedAllSteps).toBe(true)
    expect(trial.collection('mine').members).toEqual(['short'])
    expect(await trial.tensor('long').reductionValue(2, 'max')).toBe(2)
    expect((await verifyTrial(place, { s3: OPTIONS, deep: true })).problems).toEqual([])
    await expect(createWriter(place, options)).rejects.toThrow(/expected no part of worker_0 yet/)
  })
})
