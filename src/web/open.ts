/** Trials in a browser: their places, and how they are opened. */

import { shown } from '../base/arguments.js'
import { quote, UsageError } from '../base/errors.js'
import { checkOptions, type Kinds, kinds, optionsOf } from '../base/options.js'
import { isCheckpointFile } from '../format/checkpoint/formats.js'
import type { AnyVerifyOptions, Verification } from '../integrity/verify/verify.js'
import { Access } from '../scan/runner/access.js'
import { isInside } from '../storage/web/listing.js'
import { openStore } from '../storage/web/open.js'
import { specOf, type WebFile, type WebStoreSpec } from '../storage/web/place.js'
import { ANY_TRIAL_KINDS, type AnyTrialOptions, openTrialAt } from '../trial/open.js'
import type { Trial } from '../trial/trial.js'
import { loadCore } from './core.js'

/**
 * The place of a trial:
 * - a folder that was picked (`showDirectoryPicker`) or lies in the page's own storage
 * - files, each with its `webkitRelativePath`: those of an `<input type="file" webkitdirectory>`
 * - a file of a checkpoint, or several without a folder
 * - the URL of its root, on any server that answers Range requests, or that of a file of a checkpoint
 */
export type TrialPlace = FileSystemDirectoryHandle | File | Iterable<File> | string | URL

/** The options of a trial behind a URL. */
export interface HttpOptions {
  /**
   * The files of the trial, since HTTP lists none: their paths, or for files that don't lie below the trial's URL (as
   * presigned ones) also their URLs; or the URL of a text with a path a line or of S3's ListObjectsV2. Default:
   * `listing.txt` in the root of the trial.
   */
  readonly listing?: string | URL | readonly (string | WebFile)[]
  /** The headers of every request, such as for authorization. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface TrialOptions extends AnyTrialOptions, HttpOptions {}
export interface VerifyOptions extends AnyVerifyOptions, HttpOptions {}

const HTTP_KINDS: Kinds<HttpOptions> = {
  listing: kinds.that<NonNullable<HttpOptions['listing']>>('a URL, or an array of paths or { path, url }', isListing),
  headers: kinds.that<Readonly<Record<string, string>>>('an object of texts', isHeaders),
}

const TRIAL_OPTIONS = optionsOf<TrialOptions>({ ...ANY_TRIAL_KINDS, ...HTTP_KINDS })

/**
 * Opens a trial of smdebug or Tornasole, or a directory of TensorBoard event files. Loads the core first.
 * @throws StoreError if it can't be reached, MissingCollectionFiles if it is not a trial, UsageError for bad options
 *   and for options that have no effect on this trial
 */
export async function createTrial(place: TrialPlace, options?: TrialOptions): Promise<Trial> {
  const { listing, headers, ...openOptions } = checkOptions('createTrial', TRIAL_OPTIONS, options)
  const { spec, file } = placeOf(place, { listing, headers })
  await loadCore()
  return openTrialAt(new Access(openStore(spec), spec), spec.root + (file ?? ''), { ...openOptions, file })
}

/** An alias of `createTrial`. */
export const openTrial = createTrial

/**
 * Reads a whole trial and reports what is wrong with it.
 * @throws StoreError if the trial can't be reached, MissingCollectionFiles if there is none; UsageError; the signal's
 * reason
 */
export async function verifyTrial(place: TrialPlace, options?: VerifyOptions): Promise<Verification> {
  // Most pages verify nothing, so the module is loaded late.
  const { ANY_VERIFY_KINDS, verifyTrialAt } = await import('../integrity/verify/verify.js')
  const kinds = optionsOf<VerifyOptions>({ ...ANY_VERIFY_KINDS, ...HTTP_KINDS })
  const { listing, headers, ...verifyOptions } = checkOptions('verifyTrial', kinds, options)
  const { spec, file } = placeOf(place, { listing, headers })
  await loadCore()
  return verifyTrialAt(new Access(openStore(spec), spec), verifyOptions, file)
}

/** A store, and the name of its only file that counts. */
interface OpenedPlace {
  readonly spec: WebStoreSpec
  readonly file?: string
}

/** The options of HTTP, as far as they were given. */
type GivenHttp = { readonly [K in keyof HttpOptions]-?: HttpOptions[K] | undefined }

function placeOf(place: TrialPlace, options: GivenHttp): OpenedPlace {
  if (typeof place === 'string' || place instanceof URL) return placeOfUrl(place, options)
  const [idle] = Object.entries(options).find(([, value]) => value !== undefined) ?? []
  if (idle !== undefined) {
    const message = `expected ${idle} for a trial behind a URL only, got it for ${shown(place)}`
    throw new UsageError(message, { option: idle })
  }
  if (isFolder(place)) return { spec: specOf(`${place.name}/`, { kind: 'folder', folder: place }) }
  return placeOfFiles(place instanceof File ? [place] : place)
}

function placeOfUrl(place: string | URL, { listing, headers = {} }: GivenHttp): OpenedPlace {
  const url = urlOf(place, undefined)
  const file = decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1))
  if (listing !== undefined || !isCheckpointFile(file)) return { spec: httpSpec(url, place, { listing, headers }) }
  const files = [{ path: file, url: url.href }]
  return { spec: specOf(new URL('.', url).href, { kind: 'http', listing: files, headers }), file }
}

/** The spec of a store over HTTP. @param given the URL as the caller wrote it */
function httpSpec(root: URL, given: string | URL, { listing, headers = {} }: GivenHttp): WebStoreSpec {
  if (!root.pathname.endsWith('/')) root.pathname += '/'
  if (root.search !== '' || root.hash !== '') {
    const hint = 'a URL for each file goes into `listing`'
    throw new UsageError(`expected the URL of a trial without query and fragment, got ${quote(String(given))}: ${hint}`)
  }
  if (typeof listing === 'object' && !(listing instanceof URL)) {
    const files = listing.map(entry => (typeof entry === 'string' ? { path: entry } : entry))
    const urls = files.map(({ path, url }) => ({ path, ...(url !== undefined && { url: urlOf(url, root).href }) }))
    return specOf(root.href, { kind: 'http', listing: urls, headers })
  }
  return specOf(root.href, { kind: 'http', listing: urlOf(listing ?? 'listing.txt', root).href, headers })
}

/** A URL, which may be relative to the trial or to the page. */
function urlOf(given: string | URL, base: URL | undefined): URL {
  try {
    const url = new URL(given, base ?? globalThis.location?.href)
    if (url.protocol === 'http:' || url.protocol === 'https:') return url
  } catch {
    // Told below.
  }
  throw new UsageError(`expected an http:// or https:// URL, got ${quote(String(given))}`, { pathOrUrl: String(given) })
}

function isFolder(place: FileSystemDirectoryHandle | File | Iterable<File>): place is FileSystemDirectoryHandle {
  return typeof FileSystemDirectoryHandle !== 'undefined' && place instanceof FileSystemDirectoryHandle
}

/** The place of picked files. The first part of each path is the folder. */
function placeOfFiles(place: Iterable<File>): OpenedPlace {
  const given: unknown[] = typeof place?.[Symbol.iterator] === 'function' ? [...place] : []
  const files = given.filter(file => file instanceof File)
  if (files.length === 0 || files.length < given.length) {
    throw new UsageError(`expected a folder, files, or the URL of a trial, got ${shown(place)}`)
  }
  const [folder = ''] = files[0]!.webkitRelativePath.split('/')
  const paths = files.map(file => [file.webkitRelativePath.slice(folder.length + 1) || file.name, file] as const)
  const spec = specOf(`${folder || 'files'}/`, { kind: 'files', files: new Map(paths) })
  const [[name]] = paths as [(typeof paths)[0]]
  return folder === '' && paths.length === 1 && isCheckpointFile(name) ? { spec, file: name } : { spec }
}

function isListing(given: unknown): boolean {
  if (typeof given === 'string' || given instanceof URL) return true
  return Array.isArray(given) && given.every(isListed)
}

function isListed(given: unknown): boolean {
  if (typeof given === 'string') return isInside(given)
  if (typeof given !== 'object' || given === null || !('path' in given)) return false
  return typeof given.path === 'string' && isInside(given.path) && (!('url' in given) || typeof given.url === 'string')
}

function isHeaders(given: unknown): boolean {
  return typeof given === 'object' && given !== null && Object.values(given).every(value => typeof value === 'string')
}
