/** Listings: what honest servers answer is taken as it is; a page that isn't whole, or of something else, is not believed. */

import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrial, repairTrial, type S3Options, verifyTrial } from '#dist/index.js'
import { openStore, storeSpec } from '#dist/storage/open.js'
import { type ListPage, type ListQuery, parseListing } from '#dist/storage/s3/listing.js'
import { ListingWatch, maxListedKeys } from '#dist/storage/s3/listing-watch.js'
import type { Store } from '#dist/storage/store.js'
import { type Fault, FaultyS3, html, rewritten } from '../support/faulty-s3.js'
import { fixtureTrial } from '../support/golden.js'

const QUERY: ListQuery = { prefix: 'a b/', isFlat: false }
const NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'

function parse(text: string, query: Partial<ListQuery> = {}, bucket = 'bucket'): ListPage {
  return parseListing(text, bucket, { ...QUERY, ...query })
}

const contents = (key: string, more = ''): string => `<Contents><Key>${key}</Key><Size>1</Size>${more}</Contents>`

describe('what servers answer', () => {
  const key = 'a b/x+y%z'
  const object = { key, byteLength: 1, modifiedMs: Date.UTC(2026, 0, 1), etag: '"e"' }
  const when = '<LastModified>2026-01-01T00:00:00.000Z</LastModified>'

  it.each([
    [
      'AWS',
      `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult ${NAMESPACE}><Name>bucket</Name><Prefix>a+b/</Prefix><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated><Contents><Key>a+b/x%2By%25z</Key>${when}<ETag>&quot;e&quot;</ETag><ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><Size>1</Size><Owner><ID>1</ID></Owner><StorageClass>STANDARD</StorageClass></Contents></ListBucketResult>`,
    ],
    [
      'Ceph',
      `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult ${NAMESPACE}><EncodingType>url</EncodingType><Name>bucket</Name><Prefix>a b/</Prefix><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Contents><Key>a%20b%2Fx%2By%25z</Key>${when}<ETag>&quot;e&quot;</ETag><Size>1</Size></Contents><KeyCount>1</KeyCount></ListBucketResult>`,
    ],
    [
      'MinIO',
      `\ufeff<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult ${NAMESPACE}><Name>bucket</Name><Prefix>a+b/</Prefix><StartAfter></StartAfter><ContinuationToken></ContinuationToken><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><Delimiter></Delimiter><IsTruncated>false</IsTruncated><Contents><Key>a+b/x%2By%25z</Key>${when}<ETag>&#34;e&#34;</ETag><Size>1</Size><Owner><ID></ID><DisplayName></DisplayName></Owner></Contents><EncodingType>url</EncodingType></ListBucketResult>`,
    ],
    [
      'one that keeps the connection alive while it looks',
      `  \n <?xml version="1.0" encoding="UTF-8"?><ListBucketResult><IsTruncated>false</IsTruncated>${contents('a b/x+y%z', `${when}<ETag>"e"</ETag>`)}</ListBucketResult>`,
    ],
    [
      'one that spells nothing, without a namespace, a count and a prefix',
      `<ListBucketResult>\n  <IsTruncated>false</IsTruncated>\n  <Contents>\n    <Key>a b/x+y%z</Key>\n    ${when}<ETag>"e"</ETag>\n    <Size>1</Size>\n  </Contents>\n</ListBucketResult>\n`,
    ],
    [
      'one with a comment, CDATA and an empty EncodingType',
      `<?xml version="1.0"?><!-- a page --><ListBucketResult ${NAMESPACE} xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><Prefix/><EncodingType/><IsTruncated>False</IsTruncated><Contents><Key><![CDATA[a b/x+y%z]]></Key>${when}<ETag>&#x22;e&#x22;</ETag><Size> 1 </Size></Contents></ListBucketResult>`,
    ],
  ])('%s', (_, text) => {
    expect(parse(text)).toEqual({ objects: [object], prefixes: [], token: null })
  })

  it('folders, which some don’t count', () => {
    const page = (count: number) =>
      `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken><KeyCount>${count}</KeyCount>${contents('a b/f')}${contents('a b/marker/')}<CommonPrefixes><Prefix>a b/x/</Prefix></CommonPrefixes></ListBucketResult>`
    for (const count of [2, 3]) {
      expect(parse(page(count), { isFlat: true })).toMatchObject({ prefixes: ['a b/x/'], token: 't&1' })
    }
  })

  it('an alias of a bucket, whose name is another', () => {
    const page = '<ListBucketResult><Name>other</Name><IsTruncated>false</IsTruncated></ListBucketResult>'
    for (const bucket of ['x-s3alias', 'tenant:bucket']) expect(parse(page, {}, bucket).objects).toEqual([])
  })
})

describe('is no listing', () => {
  const page = (inside: string, isTruncated = 'false'): string =>
    `<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${inside}</ListBucketResult>`
  const whole = page(contents('a b/c'))

  it.each([
    ['nothing', '', 'got nothing'],
    ['blanks', ' \n', 'got nothing'],
    ['HTML', '<!DOCTYPE html><html><body>Sign in</body></html>', 'got "<!DOCTYPE html>'],
    ['XHTML', '<html><body/></html>', 'got "<html>'],
    ['JSON', '{"objects": []}', 'a complete ListBucketResult'],
    ['an error', '<Error><Code>InternalError</Code></Error>', 'got "<Error><Code>InternalError'],
    [
      'another listing',
      '<ListVersionsResult><IsTruncated>false</IsTruncated></ListVersionsResult>',
      'ListVersionsResult',
    ],
    ['two listings', whole + whole, 'a complete ListBucketResult'],
    ['text behind it', `${whole}x`, 'a complete ListBucketResult'],
    ['an empty element', '<ListBucketResult/>', 'expected IsTruncated, true or false, got none'],
    ['no IsTruncated', `<ListBucketResult>${contents('a b/c')}</ListBucketResult>`, 'expected IsTruncated'],
    ['another IsTruncated', page('', 'maybe'), 'got "maybe"'],
    ['more without a token', page(contents('a b/c'), 'true'), 'a NextContinuationToken'],
    ['more with an empty token', page('<NextContinuationToken/>', 'true'), 'a NextContinuationToken'],
    ['another bucket', page('<Name>other</Name>'), 'expected that bucket, got bucket "other"'],
    ['another prefix', page('<Prefix>a b/c/</Prefix>'), 'expected that prefix, got prefix "a b/c/"'],
    ['another page', page('<ContinuationToken>t</ContinuationToken>'), 'the page that was asked for'],
    ['from elsewhere on', page('<StartAfter>a b/z</StartAfter>'), 'what comes after "a b/z"'],
    ['a key outside', page(contents('b/c')), 'expected keys under that prefix, got "b/c"'],
    ['a folder outside', page('<CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>'), 'under that prefix'],
    ['folders instead of keys', page('<CommonPrefixes><Prefix>a b/c/</Prefix></CommonPrefixes>'), 'expected all keys'],
    ['more counted', page(`${contents('a b/c')}<KeyCount>2</KeyCount>`), 'expected 2 keys (KeyCount), got 1'],
    ['no number counted', page('<KeyCount>x</KeyCount>'), 'expected x keys'],
    ['a bad %', page(`<EncodingType>url</EncodingType>${contents('a b/100%')}`), 'each % before two digits'],
    ['no UTF-8', page(`<EncodingType>url</EncodingType>${contents('a b/%ff')}`), 'each % before two digits'],
    ['another encoding', page('<EncodingType>base64</EncodingType>'), 'got "base64"'],
    ['no key', page('<Contents><Size>1</Size></Contents>'), 'expected a Key in Contents'],
    ['an empty key', page(contents('')), 'expected a Key in Contents'],
    ['two keys', page('<Contents><Key>a b/c</Key><Key>a b/d</Key><Size>1</Size></Contents>'), 'expected one Key'],
    ['no size', page('<Contents><Key>a b/c</Key></Contents>'), 'expected a Size in "a b/c"'],
    ['a negative size', page('<Contents><Key>a b/c</Key><Size>-1</Size></Contents>'), 'the size of "a b/c"'],
    ['an endless size', page(`<Contents><Key>a b/c</Key><Size>${'9'.repeat(20)}</Size></Contents>`), 'the size of'],
    ['no time', page(contents('a b/c', '<LastModified>soon</LastModified>')), 'the time of "a b/c", got "soon"'],
    ['an unknown entity', page(contents('a b/&nbsp;')), "isn't defined: &nbsp;"],
    ['an open entity', page(contents('a b/&amp')), 'expected XML'],
    ['an inherited entity', page(contents('a b/&toString;')), 'expected XML'],
    ['elements beyond measure', page('<a/>'.repeat(400_000)), 'expected less than 400000 tags, got more'],
    ['an element that ends as another', page('<a></b>'), 'a complete ListBucketResult'],
    ['elements without end', '<ListBucketResult>'.repeat(1000), 'a complete ListBucketResult'],
  ])('%s', (_, text, message) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ code: 'BadListing', retryable: true }))
    expect(() => parse(text)).toThrow(message)
  })

  it('cut anywhere', () => {
    const text = `<?xml version="1.0"?>${page(contents('a b/c') + contents('a b/d', '<ETag>&quot;e&quot;</ETag>'))}`
    for (let end = 0; end < text.length; end++) expect(() => parse(text.slice(0, end))).toThrow('expected ')
    expect(parse(text).objects).toHaveLength(2)
  })

  it('with keys of a deeper level, where one was asked for', () => {
    expect(() => parse(page(contents('a b/c/d')), { isFlat: true })).toThrow('no keys with a further slash')
  })
})

const MANY = 1_000_000

describe('pages of one listing', () => {
  const pageOf = (
    keys: readonly string[],
    token: string | null = null,
    prefixes: readonly string[] = [],
  ): ListPage => ({
    objects: keys.map(key => ({ key, byteLength: 1, modifiedMs: 0, etag: '' })),
    prefixes,
    token,
  })
  const accept = (pages: readonly ListPage[], bucket = 'bucket'): void => {
    const watch = new ListingWatch(bucket, MANY)
    for (const page of pages) watch.accept(page)
  }

  it.each([
    ['by bytes', ['a-b', 'a.b', 'a/b', 'a0', 'é', '\uffee', '😀']],
    ['file by file', ['a/b', 'a/c/d', 'a-b', 'a.b', 'b']],
  ])('may be in order %s', (_, keys) => {
    accept([pageOf(keys)])
    accept(keys.map((key, i) => pageOf([key], i === keys.length - 1 ? null : key)))
  })

  it.each([
    ['on a page', [pageOf(['a', 'c', 'b'])]],
    ['twice on a page', [pageOf(['a', 'a'])]],
    ['twice on two', [pageOf(['a', 'b'], 't'), pageOf(['b', 'c'])]],
    ['the same page again', [pageOf(['a', 'b'], 't'), pageOf(['a', 'b'], 'u')]],
    ['an earlier one', [pageOf(['c', 'd'], 't'), pageOf(['a'])]],
    ['in two orders', [pageOf(['a/b', 'a-b'], 't'), pageOf(['b-c', 'b/c'])]],
    ['of folders', [pageOf([], null, ['b/', 'a/'])]],
  ])('are not out of order: %s', (_, pages) => {
    expect(() => accept(pages)).toThrow('expected keys in order, each once, got "')
  })

  it('of directory buckets are in no order, but no key comes twice', () => {
    const bucket = 'b--use1-az4--x-s3'
    accept([pageOf(['c', 'a'], 't'), pageOf(['b'])], bucket)
    expect(() => accept([pageOf(['c', 'a'], 't'), pageOf(['a'])], bucket)).toThrow('"a" again')
    expect(() => accept([pageOf(['c', 'c'])], bucket)).toThrow('each key once')
  })

  it('that are refused count for nothing: the next try may be right', () => {
    const watch = new ListingWatch('bucket', MANY)
    watch.accept(pageOf(['a'], 't'))
    expect(() => watch.accept(pageOf(['b', 'a'], 'u'))).toThrow('in order')
    watch.accept(pageOf(['b', 'c'], 'u'))
    expect(() => watch.accept(pageOf(['d'], 't'))).toThrow('"t" again')
  })

  it('may be empty, but not for ever', () => {
    const watch = new ListingWatch('bucket', MANY)
    const endless = (): void => {
      for (let i = 0; i < 10_000; i++) watch.accept(pageOf([], `${i}`))
    }
    expect(endless).toThrow(expect.objectContaining({ code: 'EndlessListing', retryable: false }))
    accept(
      Array.from({ length: 1000 }, (_, i) => pageOf(i % 100 === 0 ? [`${1000 + i}`] : [], i < 999 ? `${i}` : null)),
    )
  })
})

describe('ever new keys', () => {
  const pageOf = (number: number): ListPage => ({
    objects: Array.from({ length: 100 }, (_, i) => ({
      key: String(number * 100 + i).padStart(12, '0'),
      byteLength: 1,
      modifiedMs: 0,
      etag: '',
    })),
    prefixes: [],
    token: `${number + 1}`,
  })

  it('end at the limit', () => {
    const watch = new ListingWatch('bucket', 250)
    watch.accept(pageOf(0))
    watch.accept(pageOf(1))
    const failure = { code: 'LongListing', retryable: false }
    expect(() => watch.accept(pageOf(2))).toThrow(expect.objectContaining(failure))
    expect(() => watch.accept(pageOf(2))).toThrow('expected at most 250 objects, got more (s3.listLimit')
  })

  it('which is what memory holds, unless more are asked for', () => {
    const most = maxListedKeys(undefined)
    expect(most).toBeGreaterThanOrEqual(200_000)
    expect(most).toBeLessThanOrEqual(10_000_000)
    // How much else may lie in the place of a trial says nothing about the trial.
    expect(maxListedKeys(1000)).toBe(most)
    expect(maxListedKeys(20_000_000)).toBe(20_000_000)
    expect(maxListedKeys(0)).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('over the wire', () => {
  let server: FaultyS3

  beforeEach(async () => {
    server = await FaultyS3.start()
    server.objects.set('t/events/a', Buffer.from('a'))
    server.objects.set('t/events/b', Buffer.from('b'))
  })

  afterEach(() => server.stop())

  function open(options: S3Options = {}): Store {
    return openStore(storeSpec('s3://bucket/t', { s3: { ...server.options, ...options } }))
  }

  const LIES: readonly (readonly [string, Fault])[] = [
    ['200 with HTML', html(200)],
    ['200 with nothing', answer => answer.end()],
    ['204', answer => answer.writeHead(204).end()],
    ['no token', rewritten(xml => xml.replace('>false<', '>true<'))],
    ['cut', rewritten(xml => xml.slice(0, -40))],
    ['no UTF-8', answer => answer.end(Buffer.from([0x3c, 0xff]))],
    ['another prefix', rewritten(xml => xml.replaceAll('t/events/', 'u/events/'))],
    ['another root', rewritten(xml => xml.replaceAll('ListBucketResult', 'ListAllMyBucketsResult'))],
    ['without end', answer => answer.end(Buffer.alloc(20 << 20, ' '))],
  ]

  it.each(LIES)('%s is asked for again', async (_, lie) => {
    server.listFaults.push(lie, lie)
    expect(await open().list('events')).toEqual(['events/a', 'events/b'])
    expect(server.seen).toHaveLength(3)
  })

  it.each(LIES)('%s for ever is an error that names the bucket, the prefix and what was wrong', async (_, lie) => {
    server.listFaults.push(lie, lie, lie)
    const error = await open({ maxAttempts: 2 })
      .list('events')
      .catch(error => error)
    expect(error).toMatchObject({ name: 'StoreError', code: 'Unavailable', retryable: true })
    expect(error.message).toMatch(/^s3:\/\/bucket\/t\/events\/: .*bucket bucket.*expected .*, got .* \(2 attempts\)$/)
    expect(server.seen).toHaveLength(2)
  })

  it('a token that comes again ends', async () => {
    server.pageKeys = 1
    server.listFaults.push(...Array<Fault>(20).fill(rewritten(xml => xml.replace(/(<NextCont.*?>).*?</, '$1same<'))))
    const error = await open({ maxAttempts: 2 })
      .list('events')
      .catch(error => error)
    expect(error).toMatchObject({ name: 'StoreError', code: 'Unavailable' })
    expect(server.seen.length).toBeLessThan(5)
  })

  it('empty pages for ever end', async () => {
    let page = 0
    const empty = `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>`
    const endless: Fault = answer => answer.end(`${empty}${page++}</NextContinuationToken></ListBucketResult>`)
    server.listFaults.push(...Array<Fault>(1000).fill(endless))
    await expect(open().list('events')).rejects.toMatchObject({ name: 'StoreError', message: /250 empty ones/ })
    expect(server.seen.length).toBeLessThan(300)
  })

  it.each([true, false])('keys with anything in them, on a server that encodes: %s', async encodes => {
    server.encodes = encodes
    const keys = ['a+b', 'a b', '100%', '%41', '<&">', 'é😀', "'", '#?']
    server.objects.clear()
    for (const key of keys) server.objects.set(`t +%/events/${key}`, Buffer.from(key))
    const store = openStore(storeSpec('s3://bucket/t +%', { s3: server.options }))
    server.pageKeys = 3
    expect(await store.list('events')).toEqual(keys.map(key => `events/${key}`).sort())
    expect(await store.list('', { recursive: true })).toEqual(keys.map(key => `events/${key}`).sort())
  })

  it('a page that is not whole keeps every command from an answer with less', async () => {
    const { directory } = fixtureTrial('mlp-vanishing')
    for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
      if (statSync(join(directory, path)).isFile())
        server.objects.set(`trial/${path}`, readFileSync(join(directory, path)))
    }
    server.pageKeys = 5
    const s3 = { ...server.options, maxAttempts: 2 }
    const first = rewritten(xml => xml.replace(/<NextContinuationToken>.*?<\/NextContinuationToken>/, ''))
    const out = join(import.meta.dirname, `.copy-${process.pid}`)
    const works = [
      () => createTrial('s3://bucket/trial', { s3 }),
      () => verifyTrial('s3://bucket/trial', { s3, threads: 0 }),
      () => repairTrial('s3://bucket/trial', out, { s3, threads: 0 }),
    ]
    for (const work of works) {
      server.listFaults.push(...Array<Fault>(100).fill(first))
      await expect(work()).rejects.toMatchObject({ name: 'StoreError', code: 'Unavailable' })
      expect(() => statSync(out)).toThrow()
      server.listFaults.length = 0
      await work()
    }
    rmSync(out, { recursive: true })
  })
})
