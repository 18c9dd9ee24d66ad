/** Feeds each parser a megabyte of what it can like least, and prints what that took. Run by amplification.long.test.ts. */

import { Membership, parseCollections } from '#dist/format/collections.js'
import { IndexFileReader, parseIndexFile } from '#dist/format/index-file.js'
import { parseJsonObject } from '#dist/format/json.js'
import * as paths from '#dist/format/paths.js'
import { parseReductionName } from '#dist/format/reduction-name.js'
import { compilePattern } from '#dist/format/regex/pattern.js'
import { markBoundaries } from '#dist/format/regex/python-regex.js'
import { parseTornasoleCollections, parseTornasoleIndex } from '#dist/format/tornasole.js'
import { decodeIndexCache } from '#dist/scan/catalog/load/index-cache.js'
import { parseListing } from '#dist/storage/s3/listing.js'

const MIB = 2 ** 20
const PIECES = [
  ', ',
  ',',
  ', /',
  ', /events/',
  ', events/',
  ', s3:/',
  ', 1',
  '1',
  ' ',
  '\n',
  '\r\n',
  '\r',
  '/',
  '/events/',
  'index/1/1_',
  '_',
  '-',
  '_a-',
  '_replica-0',
  '.json',
  'collections.json',
  '!@',
  'v0!@a!@',
  '"',
  '\\',
  '\\"',
  '\\u00',
  '[',
  '{',
  '{"":',
  '[{},',
  '(',
  '(?:',
  '(?=',
  'a{1000}',
  '.*',
  '\\b',
  'smdebug/reductions/min/',
  'é',
  '<a>',
  '<a/>',
  '<a b="',
  '<!--',
  '<?',
  '<![CDATA[',
  ']]>',
  '&',
  '&amp;',
  '&#',
  '%',
  '%25',
  '+',
  '<Contents>',
  '<Contents><Key>a</Key><Size>1</Size></Contents>',
]
/** What stands around them. */
const FRAMES = [
  text => text,
  text => `${text}x`,
  text => `a${text}, 1, 1`,
  text => `v0!@a!@${text}!@b!@c`,
  text => `{"meta": ${text}`,
  text =>
    `{"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": ${JSON.stringify(text)}}, "tensor_payload": []}`,
  text => `{"collections": {"a": {"include_regex": [${JSON.stringify(text)}]}}, "_meta": {}}`,
  text => `<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>${text}`,
  text =>
    `<ListBucketResult><IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>${text}</ListBucketResult>`,
  text =>
    `<ListBucketResult><IsTruncated>false</IsTruncated><EncodingType>url</EncodingType><Contents><Key>${text}</Key><Size>1</Size></Contents></ListBucketResult>`,
]
const bytesOf = text => new TextEncoder().encode(text)
/** Each with the frames that are for it. */
const PARSERS = {
  index: [text => parseIndexFile(text, 'u'), [0, 4, 5]],
  indexBytes: [text => new IndexFileReader().read(bytesOf(text), 'u'), [4]],
  json: [text => parseJsonObject(text, 'u', 'Bad'), [0, 4]],
  collections: [
    text => {
      for (const config of parseCollections(text, 'u').collections.values()) new Membership(['a', 'b']).members(config)
    },
    [6],
  ],
  tornasoleIndex: [text => parseTornasoleIndex(text, 'u'), [0, 2]],
  tornasoleCollections: [text => parseTornasoleCollections(text, 'u'), [3]],
  pattern: [text => compilePattern(text.slice(0, 1 << 12)).matches(text), [0]],
  boundaries: [text => markBoundaries(text), [0]],
  reductionName: [text => parseReductionName(text), [0, 1]],
  eventFileName: [text => paths.checkEventFileName(text, 'u'), [0]],
  indexName: [text => paths.parseIndexFileName(text), [0, 1]],
  eventName: [text => paths.parseEventFileName(text), [0, 1]],
  collectionsName: [text => paths.parseCollectionsFileName(text), [0, 1]],
  worker: [text => paths.unescapeWorker(text), [0]],
  noStep: [text => paths.isOfNoStep(text), [0, 1]],
  trials: [text => paths.trialsAmong([text]), [0, 1]],
  listing: [text => parseListing(text, 'bucket', { prefix: '', isFlat: false }), [0, 7, 8, 9]],
  cache: [text => decodeIndexCache('t', bytesOf(text)), [0]],
}

const results = []
for (const [parser, [parse, frames]] of Object.entries(PARSERS)) {
  for (const i of frames) {
    let ms = 0
    let worst = ''
    for (const piece of PIECES) {
      const text = FRAMES[i](piece.repeat(MIB / piece.length / (parser === 'pattern' ? 8 : 1)))
      const before = process.cpuUsage()
      try {
        parse(text)
      } catch (error) {
        if (typeof error.code !== 'string') throw error
      }
      const { user, system } = process.cpuUsage(before)
      const took = (user + system) / 1000
      if (took > ms) [ms, worst] = [took, piece]
    }
    results.push({ parser, frame: i, worst, ms })
  }
}
process.stdout.write(JSON.stringify(results))
