/** TensorFlow.js as its users have it, on the backend that needs nothing but JavaScript. */

import '@tensorflow/tfjs-backend-cpu'
import * as core from '@tensorflow/tfjs-core'
import * as layers from '@tensorflow/tfjs-layers'

// It advises to install another backend.
core.env().set('PROD', true)
await core.setBackend('cpu')

export const tf = { ...core, ...layers }
