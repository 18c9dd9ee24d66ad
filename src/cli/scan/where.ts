/** The parser of expressions. Loaded where there is one. */

export { parseWhere } from '../../table/where.js'
