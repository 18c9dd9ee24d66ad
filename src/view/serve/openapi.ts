/** The description of the API, as OpenAPI 3.1. */

import { type Parameter, SCAN, SCAN_FORMATS, SELECTION, VALUE } from './asked.js'

interface Operation {
  readonly path: string
  readonly summary: string
  readonly description?: string
  readonly parameters: readonly Parameter[]
  /** The answers by media type. */
  readonly answers: Readonly<Record<string, object>>
}

const object = (properties: Readonly<Record<string, object>>) => ({ type: 'object', properties })
const array = (items: object) => ({ type: 'array', items })
const text = { type: 'string' }
const integer = { type: 'integer' }
const number = { type: ['number', 'string'], description: 'NaN and the infinities are texts.' }
const orNull = (type: string) => ({ type: [type, 'null'] })

const TRIAL = object({
  id: text,
  path: text,
  state: { type: 'string', enum: ['opening', 'failed', 'running', 'ended'] },
  error: orNull('string'),
  name: text,
  steps: integer,
  firstStep: orNull('integer'),
  lastStep: orNull('integer'),
  modes: array(text),
  workers: array(text),
  tensors: integer,
  findings: orNull('integer'),
  judged: { type: ['object', 'null'], description: 'The progress of the rules: state and steps.' },
  loss: { type: ['object', 'null'], description: 'The course of the loss: at most 240 points for each mode.' },
  changed: orNull('string'),
  cause: { type: ['object', 'null'], description: 'The first finding, which follows from no other.' },
})
const ROW = object({
  tensor: orNull('string'),
  step: integer,
  mode: text,
  mode_step: integer,
  worker: text,
  dtype: orNull('string'),
  shape: { type: ['array', 'null'], items: integer },
  error: { type: 'object', description: 'Why it can’t be had.' },
})

const OPERATIONS: readonly Operation[] = [
  { path: '/api/trials', summary: 'All trials', parameters: [], answers: { 'application/json': array(TRIAL) } },
  { path: '/api/trials/{id}', summary: 'One trial', parameters: [], answers: { 'application/json': TRIAL } },
  {
    path: '/api/trials/{id}/tensors',
    summary: 'Dtype, shape, steps and bytes of every tensor',
    parameters: [],
    answers: {
      'application/json': array(
        object({
          name: text,
          dtype: orNull('string'),
          shape: { type: ['array', 'null'], items: integer },
          stepCount: integer,
          firstStep: integer,
          lastStep: integer,
          byteLength: integer,
        }),
      ),
    },
  },
  {
    path: '/api/trials/{id}/scan',
    summary: 'Reductions of many tensors, in one pass',
    description:
      'Rows in the order of steps, workers and tensors, as `trialscan scan` writes them, sent as they are made. A row of an unreadable record has an `error`. An answer that breaks off is not whole.',
    parameters: SCAN,
    answers: {
      'application/jsonl': { type: 'string', description: 'A row a line.' },
      'application/json': array(ROW),
      'text/csv': { type: 'string' },
      'application/vnd.apache.arrow.stream': { type: 'string', format: 'binary' },
      'application/vnd.apache.parquet': { type: 'string', format: 'binary' },
    },
  },
  {
    path: '/api/trials/{id}/value',
    summary: 'All elements of a tensor at a step',
    parameters: VALUE,
    answers: {
      'application/json': object({
        tensor: text,
        step: integer,
        worker: text,
        dtype: text,
        shape: array(integer),
        values: { description: 'Nested lists.' },
      }),
      'application/octet-stream': { type: 'string', format: 'binary', description: 'numpy’s .npy' },
    },
  },
  {
    path: '/api/trials/{id}/overview',
    summary: 'A training at a glance: losses, gradients, weights, updates, NaN, findings',
    parameters: SELECTION,
    answers: {
      'application/json': object({
        name: text,
        isEnded: { type: 'boolean' },
        losses: array(object({ tensor: text, mode: text, steps: array(integer), values: array(number) })),
      }),
    },
  },
  {
    path: '/api/trials/{id}/findings',
    summary: 'What the rules have found so far, each with its cause',
    parameters: [],
    answers: {
      'application/json': object({
        rules: array(text),
        findings: array(
          object({ rule: text, step: integer, tensor: orNull('string'), message: text, cause: orNull('integer') }),
        ),
      }),
    },
  },
  {
    path: '/api/trials/{id}/events',
    summary: 'Changes, as they come (server-sent events)',
    description:
      'An event `change` at once and after each change: {"id", "version", "steps", "findings", "isEnded", "isOver"}. It ends once nothing can change any more.',
    parameters: [],
    answers: { 'text/event-stream': text },
  },
  {
    path: '/api/events',
    summary: 'Changes of all trials that have been looked at, as they come (server-sent events)',
    description: 'The same events. It goes on for as long as the server does.',
    parameters: [],
    answers: { 'text/event-stream': text },
  },
]

const PROBLEM = { 'application/json': { schema: object({ error: object({ code: text, message: text }) }) } }

export const OPENAPI = {
  openapi: '3.1.0',
  info: {
    title: 'trialscan',
    version: '',
    description: `Tensors that training jobs saved, and what they say. Rows come as ${SCAN_FORMATS.join(', ')}. Answers have ETags; send them as If-None-Match.`,
  },
  security: [{}, { token: [] }],
  paths: Object.fromEntries(OPERATIONS.map(operation => [operation.path, { get: described(operation) }])),
  components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
}

function described({ path, summary, description, parameters, answers }: Operation) {
  const inPath = path.includes('{id}')
    ? [{ name: 'id', in: 'path', required: true, schema: text, description: 'As /api/trials lists it.' }]
    : []
  return {
    operationId: path === '/api/events' ? 'all-events' : path.endsWith('{id}') ? 'trial' : path.split('/').at(-1),
    summary,
    ...(description !== undefined && { description }),
    parameters: [...inPath, ...parameters.map(inQuery)],
    responses: {
      '200': {
        description: summary,
        content: Object.fromEntries(Object.entries(answers).map(([type, schema]) => [type, { schema }])),
      },
      '304': { description: 'As it was, by If-None-Match' },
      '400': { description: 'A parameter is wrong', content: PROBLEM },
      '401': { description: 'The token is missing', content: PROBLEM },
      '404': { description: 'The trial, the tensor or the step is not there', content: PROBLEM },
      '503': { description: 'Too much at once: come again', content: PROBLEM },
    },
  }
}

function inQuery({ name, description, isRequired = false, isRepeatable, values, isInteger, example }: Parameter) {
  const schema = isInteger ? { type: 'integer', minimum: 0 } : { type: 'string', ...(values && { enum: values }) }
  return {
    name,
    in: 'query',
    required: isRequired,
    description,
    schema: isRepeatable ? array(schema) : schema,
    ...(isRepeatable && { explode: true }),
    ...(example !== undefined && { example: isRepeatable ? [example] : example }),
  }
}
