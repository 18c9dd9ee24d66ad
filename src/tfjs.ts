/** The public API for trainings with TensorFlow.js: re-exports only. */

export { type CallbackOf, createHook, type HookOptions, type TrialHook } from './write/tfjs/hook.js'
export type { HookAction, HookReport, HookRule, HookRules } from './write/tfjs/rules.js'
export type { TensorFlow, TfModel, TfOptimizer, TfTensor, TfVariable } from './write/tfjs/tensorflow.js'
