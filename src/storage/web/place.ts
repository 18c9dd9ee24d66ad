/** The place of a trial in a page: picked files, a folder, or URLs. */

/** A file behind a URL. */
export interface WebFile {
  /** The path relative to the trial, with `/`. */
  readonly path: string
  /** The URL of the file. Default: the path below the trial's URL. */
  readonly url?: string | undefined
}

export type Place =
  | { readonly kind: 'files'; readonly files: ReadonlyMap<string, File> }
  | { readonly kind: 'folder'; readonly folder: FileSystemDirectoryHandle }
  | {
      readonly kind: 'http'
      /** The files of the trial, or the URL of a text that lists them. */
      readonly listing: readonly WebFile[] | string
      /** The headers of every request. */
      readonly headers: Readonly<Record<string, string>>
    }

/** A page's store as plain data. Its files or folder can't be written as such, and are posted to each thread once. */
export interface WebStoreSpec {
  readonly kind: 'web'
  /** The common prefix of the files' URLs, for errors. */
  readonly root: string
  /** True if reading makes requests. */
  readonly isRemote: boolean
  readonly place: number
}

/** The places, each kept as long as its spec. */
const places = new WeakMap<WebStoreSpec, Place>()
/** The places that a thread has received. */
const received = new Map<number, Place>()
let count = 0

/**
 * Makes the spec of a place.
 * @param root the prefix of its URLs, with a slash at the end
 */
export function specOf(root: string, place: Place): WebStoreSpec {
  const spec: WebStoreSpec = { kind: 'web', root, isRemote: place.kind === 'http', place: count++ }
  places.set(spec, place)
  return spec
}

export function placeOf(spec: WebStoreSpec): Place {
  const place = places.get(spec) ?? received.get(spec.place)
  if (place === undefined) throw new RangeError(`place ${spec.place} was not sent to this thread`)
  return place
}

/** Keeps a place that a thread has received. */
export function receivePlace(number: number, place: Place): void {
  received.set(number, place)
}

/** Forgets a place whose spec is gone. */
export function forgetPlace(number: number): void {
  received.delete(number)
}
