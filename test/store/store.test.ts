import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { openStore, storeSpec } from '#dist/store/store.js'

it('a path or a file URL is a local store with an absolute root', () => {
  expect(storeSpec('/a/b/')).toEqual({ kind: 'local', root: '/a/b' })
  expect(storeSpec('a/../b')).toEqual({ kind: 'local', root: resolve('b') })
  expect(storeSpec('file:///a%20b/c')).toEqual({ kind: 'local', root: '/a b/c' })
  expect(storeSpec('a:b')).toEqual({ kind: 'local', root: resolve('a:b') })
  expect(structuredClone(openStore(storeSpec('/a')).spec)).toEqual({ kind: 'local', root: '/a' })
})

it.each(['', 'a\0b', 's3://bucket/prefix', 'S3://bucket', 'https://host/x', 'file://otherhost/x', 'file:///a%2Fb'])(
  'refuses %j',
  path => {
    expect(() => storeSpec(path)).toThrow(expect.objectContaining({ name: 'UsageError', fields: { pathOrUrl: path } }))
  },
)

it('says that S3 is to come', () => {
  expect(() => storeSpec('s3://bucket/x')).toThrow('not supported yet')
})
