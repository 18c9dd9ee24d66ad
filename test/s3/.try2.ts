import { openStore, storeSpec } from '#dist/store/store.js'
import { sharedTrials } from '../support/golden.js'
import { OPTIONS, makeBucket, upload } from '../support/s3.js'
const bucket = await makeBucket()
await upload(sharedTrials()[0]!.directory, bucket, `t/`)
const store = openStore(storeSpec(`s3://${bucket}/t`, { s3: OPTIONS }))
const time = async (what: string, work: () => Promise<unknown>) => { const at = performance.now(); await work(); console.log(what, (performance.now() - at).toFixed(1)) }
for (let i = 0; i < 2; i++) {
await time('open', () => store.open())
await time('list', () => store.list('index', { recursive: true }))
await time('list c', () => store.list('collections', { recursive: true }))
const paths = await store.list('index', { recursive: true })
await time('get', () => store.read(paths[0]!, { maxByteLength: 1e6 }))
await time('gets', () => Promise.all(paths.map(path => store.read(path, { maxByteLength: 1e6 }))))
}
