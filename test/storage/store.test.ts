import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { openStore, storeSpec } from '#dist/storage/open.js'

it('a path or a file URL is a local store with an absolute root', () => {
  expect(storeSpec('/a/b/')).toEqual({ kind: 'local', root: '/a/b' })
  expect(storeSpec('a/../b')).toEqual({ kind: 'local', root: resolve('b') })
  expect(storeSpec('file:///a%20b/c')).toEqual({ kind: 'local', root: '/a b/c' })
  expect(storeSpec('a:b')).toEqual({ kind: 'local', root: resolve('a:b') })
  expect(structuredClone(openStore(storeSpec('/a')).spec)).toEqual({ kind: 'local', root: '/a' })
})

it('blanks around a path are left out', () => {
  expect(storeSpec(' /a b\t\n')).toEqual({ kind: 'local', root: '/a b' })
  expect(storeSpec(' s3://bucket/a ')).toMatchObject({ bucket: 'bucket', prefix: 'a/' })
})

it.each(['', ' ', 'a\0b', 's3:///prefix', 'https://host/x', 'file://otherhost/x', 'file:///a%2Fb'])(
  'refuses %j',
  path => {
    expect(() => storeSpec(path)).toThrow(expect.objectContaining({ name: 'UsageError', fields: { pathOrUrl: path } }))
  },
)

it('an s3 URL is a bucket and a prefix', () => {
  expect(storeSpec('s3://bucket/a/b', { s3: { region: 'eu-west-1' } })).toEqual({
    kind: 's3',
    bucket: 'bucket',
    prefix: 'a/b/',
    options: { region: 'eu-west-1' },
  })
})
