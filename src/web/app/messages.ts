/** The messages between the app's page and its reader, a worker that has opened the trial. */

import type { EmbeddingView, RidgeView, ServedStatistic } from '../../view/data.js'
import type { LoadedTrial } from '../../view/page/live.js'
import type { Elements, ScopedColumn } from '../../view/page/trials.js'
import type { Scope } from '../../view/serve/kept-columns.js'
import type { Change, PARTS } from '../../view/serve/served-trial.js'

/** A place that was picked, dropped or named. */
export type Picked =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'folder'; readonly folder: FileSystemDirectoryHandle }
  /** Files by their paths; those of a folder begin with its name. */
  | { readonly kind: 'files'; readonly files: ReadonlyMap<string, File> }

/** Why a place is not opened. */
export interface Refusal {
  readonly message: string
  /** Directories in it that could be opened. */
  readonly trials: readonly string[]
}

/** The page's questions to the reader. */
export interface Calls {
  /** Null: it is open. */
  open(picked: Picked): Promise<Refusal | null>
  view(): Promise<LoadedTrial['view']>
  column(name: ServedStatistic, scope: Scope): Promise<ScopedColumn>
  ridges(tensor: string): Promise<readonly RidgeView[]>
  part(name: keyof typeof PARTS): Promise<unknown>
  embedding(tensor: string): Promise<EmbeddingView>
  elements(tensor: string, step: number, worker: string): Promise<Elements>
}

export interface ToReader {
  readonly id: number
  readonly name: keyof Calls
  readonly args: readonly unknown[]
}

export type FromReader =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string }
  | { readonly change: Change }
