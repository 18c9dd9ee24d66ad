/** Stores by the place of a trial, as a person writes it. */

import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../base/errors.js'
import { ComposedStore } from './composed/composed-store.js'
import { isFile } from './local/file.js'
import { LocalStore } from './local/local-store.js'
import { S3Store } from './s3/s3-store.js'
import { type S3Options, type S3StoreSpec, s3Spec } from './s3/spec.js'
import type { LocalStoreSpec, PlainStoreSpec, Store, StoreSpec } from './store.js'

/** Makes the store for a spec. It reads nothing yet. */
export function openStore(spec: StoreSpec): Store {
  if (spec.kind === 'composed') return new ComposedStore(openStore(spec.base), spec)
  if (spec.kind === 'web') throw new UsageError(`expected a trial on disk or on S3, got one of a browser: ${spec.root}`)
  return spec.kind === 's3' ? new S3Store(spec) : new LocalStore(spec)
}

/**
 * The spec of the store at a local path, a `file://` URL or an `s3://` URL. A relative path starts at the working
 * directory. Blanks around it are ignored, as smdebug does.
 * @throws UsageError for anything else, and for an option that has no effect there
 */
export function storeSpec(
  pathOrUrl: string,
  { allowSymlinks = false, s3 = {} }: { readonly allowSymlinks?: boolean; readonly s3?: S3Options | undefined } = {},
): PlainStoreSpec {
  if (typeof pathOrUrl !== 'string' || pathOrUrl.trim() === '' || pathOrUrl.includes('\0')) {
    const got = typeof pathOrUrl === 'string' ? JSON.stringify(pathOrUrl) : `a value of type ${typeof pathOrUrl}`
    throw new UsageError(`expected the path or URL of a trial, a text that is not empty, got ${got}`, { pathOrUrl })
  }
  const place = pathOrUrl.trim()
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(place)?.[1]?.toLowerCase()
  if (scheme === 's3') {
    if (!allowSymlinks) return s3PlaceOf(s3Spec(place, s3), place)
    const message = `expected allowSymlinks for a trial on disk only, since S3 has no links, got it for ${pathOrUrl}`
    throw new UsageError(message, { pathOrUrl, option: 'allowSymlinks' })
  }
  const local = (path: string): LocalStoreSpec => {
    const [idle] = Object.entries(s3).find(([, value]) => value !== undefined) ?? []
    if (idle === undefined) return { kind: 'local', ...(allowSymlinks && { allowSymlinks }), ...placeOf(path) }
    const message = `expected s3.${idle} for a trial at s3://bucket/prefix only, got it for ${pathOrUrl}`
    throw new UsageError(message, { pathOrUrl, option: `s3.${idle}` })
  }
  if (scheme === undefined) return local(resolve(place))
  if (scheme !== 'file') {
    throw new UsageError(`expected a local path, a file:// or an s3:// URL, got ${pathOrUrl}`, { pathOrUrl })
  }
  return local(resolve(pathOf(place)))
}

/** The names of smdebug's event files, which mean nothing without their directory. */
const OF_SMDEBUG = /^\d+_.*\.tfevents$/

/** The directory of a path. If the path names an event file of TensorBoard, it is the only file that counts. */
function placeOf(path: string): Omit<LocalStoreSpec, 'kind'> {
  const name = basename(path)
  if (!name.includes('tfevents') || OF_SMDEBUG.test(name) || !isFile(path)) return { root: path }
  // A link that the user names stands for its target.
  return { root: dirname(path), only: name, allowSymlinks: true }
}

/** `placeOf` for S3, where the path alone decides: a slash at the end means a prefix. */
function s3PlaceOf(spec: S3StoreSpec, url: string): S3StoreSpec {
  const name = basename(spec.prefix)
  if (url.endsWith('/') || !name.includes('.tfevents.') || OF_SMDEBUG.test(name)) return spec
  return { ...spec, prefix: spec.prefix.slice(0, -name.length - 1), only: name }
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(url)
  } catch (error) {
    throw new UsageError(`expected a file:// URL of this machine, got ${url}`, { pathOrUrl: url }, error)
  }
}
