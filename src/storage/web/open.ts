/** Makes a store from its spec, in a browser: stands in the place of storage/open. */

import { UsageError } from '../../base/errors.js'
import { ComposedStore } from '../composed/composed-store.js'
import type { PlainStoreSpec, Store, StoreSpec } from '../store.js'
import { FileStore } from './file-store.js'
import { HttpStore } from './http-store.js'
import { placeOf } from './place.js'

/** The store for a spec. Reads nothing yet. */
export function openStore(spec: StoreSpec): Store {
  if (spec.kind === 'composed') return new ComposedStore(openStore(spec.base), spec)
  if (spec.kind !== 'web') throw new UsageError(`expected a trial of a page, got one of kind ${spec.kind}`)
  const place = placeOf(spec)
  return place.kind === 'http' ? new HttpStore(spec, place) : new FileStore(spec, place)
}

/** A page knows no paths: `createTrial` of trialscan/web takes what it was given, and URLs. */
export function storeSpec(pathOrUrl: string): PlainStoreSpec {
  throw new UsageError(`expected createTrial of trialscan/web, which takes files, folders and URLs, got ${pathOrUrl}`)
}
