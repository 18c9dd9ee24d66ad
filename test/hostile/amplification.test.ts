/** A small trial that would make much of itself: collections. What commands make of it is in amplification.long.test.ts. */

import { describe, expect, it } from 'vitest'
import { Membership, mergeCollections, parseCollections } from '#dist/format/collections.js'

const ENTRIES = 20_000

describe('collections × tensors', () => {
  const nothing = { tensorNames: [], reductionConfig: null, saveConfig: null, saveHistogram: false }
  const names = Array.from({ length: ENTRIES }, (_, i) => `model/layer${i}`)

  it('a pattern is matched once a name, and when it is asked for', () => {
    const membership = new Membership(names)
    const { includes } = String.prototype
    let searches = 0
    String.prototype.includes = function (this: string, text: string, position?: number) {
      if (text === 'layer') searches++
      return includes.call(this, text, position)
    }
    try {
      for (let i = 0; i < 100; i++) {
        expect(membership.members({ ...nothing, name: `c${i}`, includeRegex: ['layer'] }).size).toBe(ENTRIES)
      }
    } finally {
      String.prototype.includes = includes
    }
    expect(searches).toBe(ENTRIES)
  })

  it('patterns of all collections together have a limit; few have none, however many names there are', () => {
    const membership = new Membership(names)
    const ask = (i: number) => membership.members({ ...nothing, name: `c${i}`, includeRegex: [`x.${i}`] })
    let asked = 0
    const refused = () => {
      for (; asked < 10_000; asked++) ask(asked)
    }
    expect(refused).toThrow(/^collection "c\d+": expected fewer or shorter patterns, got 1 patterns for 20000 names/)
    expect([asked > 100, asked < 2000]).toEqual([true, true])
    // What was asked before is known, and what costs little is had all the same.
    expect(ask(0).size).toBe(0)
    expect(membership.members({ ...nothing, name: 'all', includeRegex: ['.*'] }).size).toBe(ENTRIES)
  })

  it('one collection of very many patterns is refused, and no other with it', () => {
    const membership = new Membership(names)
    const evil = { ...nothing, name: 'evil', includeRegex: Array.from({ length: 100_000 }, (_, i) => `x.${i}`) }
    for (let i = 0; i < 3; i++) {
      expect(() => membership.members(evil)).toThrow('collection "evil": expected fewer or shorter patterns')
    }
    expect(membership.members({ ...nothing, name: 'good', includeRegex: ['layer[0-9]$'] }).size).toBe(10)
  })
})

it('workers × collections: a hundred thousand files, each with a member of its own', () => {
  const files = Array.from({ length: 100_000 }, (_, i) =>
    parseCollections(`{"collections":{"c":{"tensor_names":["t${i}"]}},"_meta":{}}`, ''),
  )
  const startedAt = performance.now()
  expect(mergeCollections(files).collections.get('c')!.tensorNames.length).toBe(100_000)
  expect(performance.now() - startedAt).toBeLessThan(5000)
})
