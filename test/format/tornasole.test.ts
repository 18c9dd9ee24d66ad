import { describe, expect, it } from 'vitest'
import { FormatError } from '#dist/base/errors.js'
import { parseTornasoleCollections, parseTornasoleIndex } from '#dist/format/tornasole.js'
import { thrownBy } from '../support/scanning.js'

const URL = 'file:///trial/index/000000000/000000000010_algo-1.csv'
const EVENTS = '/home/ubuntu/events/run/events/000000000010/000000000010_algo-1.tfevents'

describe('the CSV index', () => {
  it('gives names, places and the event file as it lies in the trial', () => {
    const text = `fc.weight, ${EVENTS}, 0,149\ntornasole/reductions/mean/a, b,c, ${EVENTS}, 149,485\n`
    expect(parseTornasoleIndex(text, URL)).toEqual({
      eventFile: 'events/000000000010/000000000010_algo-1.tfevents',
      tensors: [
        { name: 'fc.weight', startByte: 0, byteLength: 149 },
        { name: 'tornasole/reductions/mean/a, b,c', startByte: 149, byteLength: 485 },
      ],
    })
  })

  it.each([
    ['/data/a,b/events/1/1_w.tfevents'],
    ['/data/a, b/events/1/1_w.tfevents'],
    ['runs/x/events/1/1_w.tfevents'],
    ['s3://bucket/run/events/1/1_w.tfevents'],
    ['/events/x/events/1/1_w.tfevents'],
  ])('takes what follows events/ of %s', path => {
    for (const name of ['fc.weight', 'a,b', 'a, b/c']) {
      expect(parseTornasoleIndex(`${name}, ${path}, 0,20\n`, URL)).toEqual({
        eventFile: 'events/1/1_w.tfevents',
        tensors: [{ name: path.includes(', ') ? name.split(', /')[0] : name, startByte: 0, byteLength: 20 }],
      })
    }
  })

  it('takes a path that is relative already, line ends of Windows, and nothing at all', () => {
    expect(parseTornasoleIndex('a, events/1/1_w.tfevents, 0, 20\r\n', URL)).toEqual({
      eventFile: 'events/1/1_w.tfevents',
      tensors: [{ name: 'a', startByte: 0, byteLength: 20 }],
    })
    expect(parseTornasoleIndex('', URL)).toEqual({ eventFile: null, tensors: [] })
  })

  it.each([
    ['a cut off line', `a, ${EVENTS}, 0,149\nb, ${EVENTS}, 14`, 'BadIndexFile'],
    ['a length beyond 2^53', `a, ${EVENTS}, 0,99999999999999999`, 'BadIndexFile'],
    ['two event files', `a, ${EVENTS}, 0,1\nb, x/events/1/2_w.tfevents, 0,1`, 'BadIndexFile'],
    ['an absolute path', 'a, /etc/passwd, 0,1', 'UnsafePath'],
    ['a path that climbs out', 'a, /x/events/../../../etc/passwd, 0,1', 'UnsafePath'],
  ])('refuses %s', (_, text, code) => {
    const error = thrownBy(() => parseTornasoleIndex(text, URL))
    expect(error).toBeInstanceOf(FormatError)
    expect(error).toMatchObject({ code, url: URL, expected: expect.any(String), got: expect.any(String) })
  })
})

describe('collections.ts', () => {
  it('gives patterns and tensors, a reduction counting for its tensor', () => {
    const line = 'v0!@bias!@bias$,^b!@a.bias,b.bias!@tornasole/reductions/mean/c.bias!@None!@None\n'
    const collections = parseTornasoleCollections(`v0!@default!@!@!@!@None!@None\n${line}`, URL)
    expect([...collections.keys()]).toEqual(['default', 'bias'])
    expect(collections.get('default')).toMatchObject({ name: 'default', includeRegex: [], tensorNames: [] })
    expect(collections.get('bias')).toMatchObject({
      includeRegex: ['bias$', '^b'],
      tensorNames: ['a.bias', 'b.bias', 'c.bias'],
      reductionConfig: null,
      saveConfig: null,
    })
  })

  it('refuses another version', () => {
    const error = thrownBy(() => parseTornasoleCollections('v0!@a!@!@\nv1!@b!@!@', URL))
    expect(error).toMatchObject({ code: 'BadCollectionsFile', fields: { line: 2 } })
  })
})
