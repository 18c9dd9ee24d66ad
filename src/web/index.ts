/** The public API in a browser: re-exports only. */

export * from '../api.js'
export type { WebFile } from '../storage/web/place.js'
export { loadCore } from './core.js'
export {
  createTrial,
  type HttpOptions,
  openTrial,
  type TrialOptions,
  type TrialPlace,
  type VerifyOptions,
  verifyTrial,
} from './open.js'
