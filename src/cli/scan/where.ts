/** The parser of expressions, a module of its own so that it is loaded only for `--where`. */

export { parseWhere } from '../../table/where.js'
