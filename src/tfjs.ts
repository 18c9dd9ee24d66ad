/** The public API for trainings with TensorFlow.js: re-exports only. */

export { type CallbackOf, createHook, type HookOptions, type TrialHook } from './tfjs/hook.js'
export type { HookAction, HookReport, HookRule, HookRules } from './tfjs/rules.js'
export type { TensorFlow, TfModel, TfOptimizer, TfTensor, TfVariable } from './tfjs/tensorflow.js'
