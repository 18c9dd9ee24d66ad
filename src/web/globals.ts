/** The globals of Node.js that the reader uses: the build puts them in where they are named. */

export { Buffer, setImmediate } from './platform.js'
