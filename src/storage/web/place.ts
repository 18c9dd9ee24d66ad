/** The place of a trial in a page: picked files, a folder, or URLs. */

/** A file behind a URL. */
export interface WebFile {
  /** Relative to the trial, with `/`. */
  readonly path: string
  /** Default: the path, below the trial's URL. */
  readonly url?: string | undefined
}

export type Place =
  | { readonly kind: 'files'; readonly files: ReadonlyMap<string, File> }
  | { readonly kind: 'folder'; readonly folder: FileSystemDirectoryHandle }
  | {
      readonly kind: 'http'
      /** The files of the trial, or the URL of a text that lists them. */
      readonly listing: readonly WebFile[] | string
      /** Sent with every request. */
      readonly headers: Readonly<Record<string, string>>
    }

/** A store of a page as plain data. What it stands for can't be written as such, and goes to a thread once. */
export interface WebStoreSpec {
  readonly kind: 'web'
  /** The common beginning of the files' URLs, for errors. */
  readonly root: string
  /** True if reading makes requests. */
  readonly isRemote: boolean
  /** Number of the place. */
  readonly place: number
}

/** Each as long as someone has its spec. */
const places = new WeakMap<WebStoreSpec, Place>()
/** In a thread: what it was sent. */
const received = new Map<number, Place>()
let count = 0

/** The spec of a place. @param root what its URLs begin with; ends with a slash */
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

/** Keeps a place that a thread was sent. */
export function receivePlace(number: number, place: Place): void {
  received.set(number, place)
}

/** Forgets it: nobody has its spec any more. */
export function forgetPlace(number: number): void {
  received.delete(number)
}
