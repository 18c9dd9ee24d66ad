/** What is done when a rule fires, and how actions from JSON are read and refused. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TrialscanError, UsageError } from '#dist/base/errors.js'
import {
  type Action,
  type Actions,
  callbackAction,
  commandAction,
  type Firing,
  logAction,
  postAction,
  runActions,
  type SageMakerAction,
} from '#dist/rules/action/action.js'
import { actionsOf, parseActions } from '#dist/rules/action/action-json.js'
import { type Logger, silent } from '#dist/rules/finding.js'
import { rejectionOf, thrownBy } from '../support/scanning.js'

const firing: Firing = {
  rule: 'VanishingGradient',
  name: 'mine',
  trial: 'mlp',
  step: 20,
  message: 'the gradient of "fc" is tiny; $HOME `x`',
  findings: [
    {
      rule: 'VanishingGradient',
      name: 'mine',
      trial: 'mlp',
      step: 20 as Firing['findings'][number]['step'],
      mode: 'TRAIN',
      modeStep: 10 as Firing['findings'][number]['modeStep'],
      tensor: 'gradient/fc',
      worker: null,
      value: Number.NaN,
      threshold: 1e-7,
      message: 'tiny',
    },
  ],
}
const { modeStep, trial: _, ...found } = firing.findings[0]!
const sent = { ...firing, findings: [{ ...found, mode_step: modeStep, value: 'NaN' }] }

const fire = async (action: Action, logger: Logger = silent): Promise<void> => action.onFire(firing, logger)

/** A logger that keeps what it is told. */
function recorder(): Logger & { readonly lines: string[] } {
  const lines: string[] = []
  const at = (level: string) => (message: string) => void lines.push(`${level}: ${message}`)
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

describe('actionsOf', () => {
  it('takes every form', () => {
    const onFire = (): void => {}
    const action: Action = { name: 'own', onFire }
    const names = (actions: Actions | null | undefined) => actionsOf(actions).map(({ name }) => name)
    expect([names(null), names(undefined), names(''), names(' \n'), names([])]).toEqual([[], [], [], [], []])
    expect(names('{"name":"log"}')).toEqual(['log'])
    expect(names([onFire, action, '[{"name":"log"},{"name":"sms","endpoint":"+1"}]'])).toEqual([
      'callback',
      'own',
      'log',
      'sms',
    ])
    expect(actionsOf(onFire)[0]!.onFire).toBe(onFire)
    expect(actionsOf(action)).toEqual([action])
  })

  it.each([[1], [{}], [{ name: 'x' }], [[null]], [[[]]]])('refuses %j', actions => {
    const error = thrownBy(() => actionsOf(actions as unknown as Actions))
    expect(error).toBeInstanceOf(UsageError)
  })
})

describe('runActions', () => {
  it('runs one after the other and logs what fails', async () => {
    const order: string[] = []
    const logger = recorder()
    await runActions(
      actionsOf([
        async () => {
          await new Promise(resolve => setTimeout(resolve, 5))
          order.push('first')
        },
        () => {
          throw new Error('oh')
        },
        () => Promise.reject('no error'),
        ({ step }, given) => {
          order.push(`last ${step} ${given === logger}`)
        },
      ]),
      firing,
      logger,
    )
    expect(order).toEqual(['first', 'last 20 true'])
    expect(logger.lines).toEqual([
      'error: action callback of mine at step 20 has failed: oh',
      'error: action callback of mine at step 20 has failed: no error',
    ])
  })
})

describe('a callback', () => {
  it('must be a function', () => {
    expect(thrownBy(() => callbackAction('x' as unknown as () => void))).toBeInstanceOf(UsageError)
  })
})

describe('log', () => {
  it('is a sentence at its level', async () => {
    const logger = recorder()
    await fire(logAction(), logger)
    await fire(logAction({ level: 'error' }), logger)
    await fire(parseActions('{"name":"log","level":"info"}')[0]!, logger)
    const sentence = `mine fired at step 20 of mlp: ${firing.message}`
    expect(logger.lines).toEqual([`warn: ${sentence}`, `error: ${sentence}`, `info: ${sentence}`])
  })

  it('refuses a level that is none', () => {
    const error = thrownBy(() => logAction({ level: 'loud' as 'info' }))
    expect(error).toMatchObject({
      code: 'Usage',
      message: 'logAction: expected level to be one of debug, info, warn, error, got "loud"',
    })
  })
})

describe('a command', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'trialscan-action-'))
  const node = process.execPath
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))

  it('gets the firing on its standard input and in its environment', async () => {
    const out = join(scratch, 'told.json')
    const { TRIALSCAN_RULE, TRIALSCAN_STEP, TRIALSCAN_MESSAGE } = { ...process.env }
    expect([TRIALSCAN_RULE, TRIALSCAN_STEP, TRIALSCAN_MESSAGE]).toEqual([undefined, undefined, undefined])
    const script = `
      const { TRIALSCAN_RULE, TRIALSCAN_STEP, TRIALSCAN_MESSAGE, PATH } = process.env
      const input = require('fs').readFileSync(0, 'utf8')
      const told = { argv: process.argv.slice(1), TRIALSCAN_RULE, TRIALSCAN_STEP, TRIALSCAN_MESSAGE, PATH, input }
      require('fs').writeFileSync(process.argv[1], JSON.stringify(told))`
    await fire(commandAction(node, ['-e', script, out, '$HOME; "x"']))
    const told = JSON.parse(readFileSync(out, 'utf8'))
    expect(told).toMatchObject({
      argv: [out, '$HOME; "x"'],
      TRIALSCAN_RULE: 'VanishingGradient',
      TRIALSCAN_STEP: '20',
      TRIALSCAN_MESSAGE: firing.message,
      PATH: process.env.PATH,
    })
    expect(told.input).toMatch(/^[^\n]*\n$/)
    expect(JSON.parse(told.input)).toEqual(sent)
  })

  it('is a line for the shell when it comes alone', async () => {
    const out = join(scratch, 'shell.txt')
    await fire(commandAction(`printf '%s ' "$TRIALSCAN_RULE" $((TRIALSCAN_STEP + 1)) > '${out}'`))
    expect(readFileSync(out, 'utf8')).toBe('VanishingGradient 21 ')
    const [action] = parseActions(JSON.stringify({ name: 'command', command: `cat > '${out}'` }))
    await fire(action!)
    expect(JSON.parse(readFileSync(out, 'utf8'))).toEqual(sent)
  })

  it('need not read its standard input', async () => {
    const long = { ...firing, findings: Array.from({ length: 2_000 }, () => firing.findings[0]!) }
    await commandAction('true', []).onFire(long, silent)
    await commandAction('exec 0<&-; exit 0').onFire({ ...firing, message: `\0${'x'.repeat(1e6)}` }, silent)
  })

  it('that fails is an error with the end of its standard error', async () => {
    const failure = await rejectionOf(
      fire(commandAction('head -c 5000 /dev/zero | tr "\\0" x >&2; echo why >&2; exit 3')),
    )
    expect(failure).toBeInstanceOf(TrialscanError)
    expect(failure).toMatchObject({ code: 'ActionFailed', message: expect.stringMatching(/: exit code 3: x+why$/) })
    expect((failure as Error).message.length).toBeLessThan(1_200)
    expect(await rejectionOf(fire(commandAction('kill -9 $$')))).toMatchObject({
      message: '"kill -9 $$": ended by SIGKILL',
    })
    const missing = await rejectionOf(fire(commandAction('/no/such/program', [])))
    expect(missing).toMatchObject({
      message: expect.stringMatching(/^"\/no\/such\/program": exit code 127: .*No such/),
    })
  })

  it('is killed when it takes too long', async () => {
    const slow = parseActions(JSON.stringify({ name: 'command', command: 'sleep', args: ['30'], timeout_ms: 50 }))[0]!
    const before = performance.now()
    expect(await rejectionOf(fire(slow))).toMatchObject({ message: '"sleep": killed after 0.05 s' })
    // The shell is gone, but what it has started holds its standard error open.
    const deaf = commandAction('sleep 20; true', null, { timeoutMs: 50 })
    expect(await rejectionOf(fire(deaf))).toMatchObject({ message: '"sleep 20; true": killed after 0.05 s' })
    const background = commandAction('sleep 20 & exit 3', null, { timeoutMs: 5000 })
    expect(await rejectionOf(fire(background))).toMatchObject({ message: '"sleep 20 & exit 3": exit code 3' })
    await fire(commandAction('sleep 20 & exit 0'))
    expect(performance.now() - before).toBeLessThan(15_000)
  })

  it.each([
    [() => commandAction(''), 'command: expected a command, got ""'],
    [() => commandAction(' \n'), 'expected a command'],
    [() => commandAction('a\0b'), 'expected a command'],
    [() => commandAction('a=b', []), 'expected a program, without =, got "a=b"'],
    [() => commandAction('a', ['b', 1 as unknown as string]), 'args[1]: expected a string, got 1'],
    [() => commandAction('a', 'b' as unknown as string[]), 'args: expected a list of strings, got "b"'],
    [() => commandAction('a', [], { timeoutMs: 0 }), 'expected timeoutMs to be milliseconds above 0'],
    [() => commandAction('a', [], { timeoutMs: Number.NaN }), 'got NaN'],
    [() => commandAction('a', [], { timeoutMs: 2 ** 31 }), 'got 2147483648'],
  ])('refuses %s', (call, message) => {
    const error = thrownBy(call)
    expect(error).toBeInstanceOf(UsageError)
    expect((error as Error).message).toContain(message)
  })
})

describe('a POST', () => {
  const requests: { readonly method: string; readonly headers: IncomingHttpHeaders; readonly body: string }[] = []
  let server: Server
  let url: string

  beforeAll(async () => {
    server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      requests.push({ method: request.method!, headers: request.headers, body })
      if (request.url === '/silent') return
      if (request.url === '/moved') response.setHeader('location', '/ok')
      response.statusCode = { '/ok': 204, '/moved': 302, '/broken': 500 }[request.url!] ?? 404
      response.end()
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })

  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  it('carries the firing as JSON', async () => {
    requests.length = 0
    await fire(postAction(`${url}/ok`, { headers: { authorization: 'secret' } }))
    const json = { name: 'Post', url: `${url}/ok`, headers: { 'Content-Type': 'application/x-mine' }, timeout_ms: 5000 }
    await fire(parseActions(JSON.stringify([json]))[0]!)
    expect(requests).toMatchObject([
      { method: 'POST', headers: { authorization: 'secret', 'content-type': 'application/json' } },
      { method: 'POST', headers: { 'content-type': 'application/x-mine' } },
    ])
    for (const { body } of requests) expect(JSON.parse(body)).toEqual(sent)
  })

  it('fails for any other answer, and for none', async () => {
    const failureAt = async (path: string, options = {}) => rejectionOf(fire(postAction(`${url}${path}`, options)))
    expect(await failureAt('/broken')).toMatchObject({
      code: 'ActionFailed',
      message: expect.stringMatching(/^POST to 127\.0\.0\.1:\d+: expected an answer of 2xx, got 500 Internal/),
    })
    expect(await failureAt('/moved')).toMatchObject({ message: expect.stringContaining('got 302') })
    expect(await failureAt('/silent', { timeoutMs: 50 })).toMatchObject({
      message: expect.stringContaining('no answer within 0.05 s'),
    })
    const closed = createServer()
    await new Promise<void>(resolve => closed.listen(0, '127.0.0.1', resolve))
    const { port } = closed.address() as AddressInfo
    await new Promise(resolve => closed.close(resolve))
    const refused = await rejectionOf(fire(postAction(`http://127.0.0.1:${port}/secret`)))
    expect((refused as Error).message).toContain('ECONNREFUSED')
    expect((refused as Error).message).not.toContain('secret')
  })

  it.each([
    [() => postAction('ftp://x/'), 'url: expected an http or https URL, got "ftp://x/"'],
    [() => postAction('x'), 'got "x"'],
    [() => postAction('https://me:hush@x/'), 'without user and password, got one with them'],
    [() => postAction('https://x/', { headers: { 'a b': 'c' } }), 'got "a b"'],
    [() => postAction('https://x/', { headers: { a: 1 as unknown as string } }), 'headers.a: expected a string'],
    [() => postAction('https://x/', { timeoutMs: -1 }), 'expected timeoutMs to be milliseconds'],
  ])('refuses %s', (call, message) => {
    const error = thrownBy(call)
    expect(error).toBeInstanceOf(UsageError)
    expect((error as Error).message).toContain(message)
    expect((error as Error).message).not.toContain('hush')
  })
})

describe('action_json', () => {
  const stop = { name: 'stoptraining', training_job_prefix: 'My-Job' }
  const parsed: SageMakerAction[] = [
    { name: 'stoptraining', trainingJobPrefix: 'My-Job' },
    { name: 'sms', endpoint: '+491234' },
    { name: 'email', endpoint: 'An.Na+x@mail.Example.museum' },
  ]
  const text = JSON.stringify([
    { NAME: 'StopTraining', Training_Job_Prefix: 'My-Job' },
    { name: 'SMS', endpoint: '+491234' },
    { name: 'email', endpoint: 'An.Na+x@mail.Example.museum' },
  ])

  const handled = async (text: string): Promise<SageMakerAction[]> => {
    const seen: SageMakerAction[] = []
    const actions = parseActions(text, async (action, given) => {
      await Promise.resolve()
      expect(given).toBe(firing)
      seen.push(action)
    })
    await runActions(actions, firing, silent)
    return seen
  }

  it('goes to the handler, names in either case and values as they are', async () => {
    expect(await handled(text)).toEqual(parsed)
    expect(await handled(JSON.stringify(stop))).toEqual([parsed[0]])
  })

  it('is understood with the backslashes that serialize() puts before quotes', async () => {
    expect(await handled(String.raw`{\"training_job_prefix\": \"My-Job\", \"name\": \"stoptraining\"}`)).toEqual([
      parsed[0],
    ])
    expect(await handled(text.replaceAll('"', '\\"'))).toEqual(parsed)
    const logged = String.raw`[{\"name\": \"post\", \"url\": \"https://x/\", \"headers\": {\"a\": \"b\\"c\"}}]`
    expect(parseActions(logged).map(({ name }) => name)).toEqual(['post'])
  })

  it('is told to the log where nobody handles it', async () => {
    const logger = recorder()
    await runActions(parseActions(text), firing, logger)
    const lines = [
      'stop training jobs named My-Job*',
      'send an SMS to +491234',
      'send an e-mail to An.Na+x@mail.Example.museum',
    ]
    expect(logger.lines).toEqual(
      lines.map(deed => `info: mine fired at step 20: SageMaker would ${deed}; trialscan calls no AWS`),
    )
  })

  it('is called upon, too, as the actions of a rule', () => {
    expect(actionsOf(text).map(({ name }) => name)).toEqual(['stoptraining', 'sms', 'email'])
  })

  it.each([
    ['{"name":"stoptraining"}', 'action_json.training_job_prefix: expected letters, digits and dashes, got nothing'],
    ['{"name":"stoptraining","training_job_prefix":"a_b"}', 'got "a_b"'],
    ['{"name":"stoptraining","training_job_prefix":"a\\n"}', 'expected letters'],
    ['{"name":"stoptraining","training_job_prefix":""}', 'got ""'],
    ['{"name":"stoptraining","training_job_prefix":null}', 'got nothing'],
    ['[{"name":"log"},{"name":"sms","endpoint":"49"}]', 'action_json[1].endpoint: expected a phone number'],
    ['{"name":"sms","endpoint":"+1234567890123456"}', 'got "+1234567890123456"'],
    ['{"name":"sms","endpoint":491234}', 'got 491234'],
    ['{"name":"email","endpoint":"a@b"}', 'expected an e-mail address, got "a@b"'],
    ['{"name":"email","endpoint":"a@b@c.de"}', 'expected an e-mail address'],
    ['{"name":"email","endpoint":"a@.de"}', 'expected an e-mail address'],
    ['{"name":"email","endpoint":"a@b.de."}', 'expected an e-mail address'],
    ['{"name":"email","endpoint":"@b.de"}', 'expected an e-mail address'],
    ['{"name":"email","endpoint":"a b@c.de"}', 'expected an e-mail address'],
    ['{"name":"email","adress":"a@b.de"}', 'action_json: action email takes no "adress"; known: endpoint'],
    ['{"name":"email","endpiont":"a@b.de"}', 'did you mean endpoint?'],
    ['[{"name":"stop_training"}]', 'action_json[0]: there is no action "stop_training"; did you mean stoptraining?'],
    ['{"name":"constructor"}', 'there is no action "constructor"; known: stoptraining, sms, email, log, command, post'],
    ['{}', 'action_json.name: expected one of stoptraining, sms, email, log, command, post, got nothing'],
    ['{"name":1}', 'got 1'],
    ['[[]]', 'action_json[0]: expected an object with the name of an action, got a list of 0'],
    ['null', 'got null'],
    ['"log"', 'got "log"'],
    ['{"name":"log","level":"x"}', 'action_json.level: expected one of debug'],
    ['{"name":"command"}', 'action_json.command: expected a command, got nothing'],
    ['{"name":"command","command":"x","args":"y"}', 'action_json.args: expected a list of strings, got "y"'],
    ['{"name":"command","command":"x","timeout_ms":"5"}', 'action_json.timeout_ms: expected milliseconds'],
    ['[{"name":"post","url":"file:///etc/passwd"}]', 'action_json[0].url: expected an http or https URL'],
    ['{"name":"post","url":"http://x/","headers":[]}', 'action_json.headers: expected an object, got a list of 0'],
    ['{name: log}', 'action_json: expected JSON, got '],
    ['{\\"name\\": \\"log\\"', 'action_json: expected JSON, got '],
  ])('refuses %s', (text, message) => {
    const error = thrownBy(() => parseActions(text))
    expect(error).toBeInstanceOf(UsageError)
    expect((error as Error).message).toContain(message)
  })
})
