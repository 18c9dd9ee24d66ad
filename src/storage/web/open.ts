/** Stores by their specs in a browser. It replaces storage/open. */

import { UsageError } from '../../base/errors.js'
import { ComposedStore } from '../composed/composed-store.js'
import type { PlainStoreSpec, Store, StoreSpec } from '../store.js'
import { FileStore } from './file-store.js'
import { HttpStore } from './http-store.js'
import { placeOf } from './place.js'

/** Makes the store for a spec. It reads nothing yet. */
export function openStore(spec: StoreSpec): Store {
  if (spec.kind === 'composed') return new ComposedStore(openStore(spec.base), spec)
  if (spec.kind !== 'web') throw new UsageError(`expected a trial of a page, got one of kind ${spec.kind}`)
  const place = placeOf(spec)
  return place.kind === 'http' ? new HttpStore(spec, place) : new FileStore(spec, place)
}

/** Specs by path or URL, which a page doesn't have: `createTrial` of trialscan/web takes files, folders and URLs. */
export function storeSpec(pathOrUrl: string): PlainStoreSpec {
  throw new UsageError(`expected createTrial of trialscan/web, which takes files, folders and URLs, got ${pathOrUrl}`)
}
