/** The used globals of Node.js, which the build inserts where they are named. */

export { Buffer, setImmediate } from './platform.js'
