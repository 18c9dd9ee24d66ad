#!/usr/bin/env node
/**
 * Loads the files of the bundle and, if it is the program, runs the command line. V8 would read them and compile their functions anew in
 * each process, which is a third of what a scan of 1 MB takes; `code/` has what that comes to, made when the package was built
 * (make-code.mjs). V8 takes it only if it is for its own version and flags and for a text of that length, and compiles the text otherwise.
 */

const { readdirSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { Script } = require('node:vm')

const CODE = join(__dirname, 'code', `${process.arch}-${process.versions.v8}`)

/** The file that imports ES modules for the others: a script can't, or not without a warning. */
const IMPORT = './import.cjs'

/** The files that are compiled, or null: none for this version. */
function compiledFiles() {
  try {
    return new Set(readdirSync(CODE))
  } catch {
    return null
  }
}

const compiled = compiledFiles()
const loaded = new Map()

/** In place of `require` in these files. */
function load(name) {
  if (!name.startsWith('./') || name === IMPORT) return require(name)
  let module = loaded.get(name)
  if (module === undefined) {
    module = { exports: {} }
    loaded.set(name, module)
    try {
      functionOf(name)(module.exports, load, module, join(__dirname, name), __dirname)
    } catch (error) {
      // It may be tried again: there may have been no descriptor left to open it with.
      loaded.delete(name)
      throw error
    }
  }
  return module.exports
}

function functionOf(name) {
  const filename = join(__dirname, name)
  return new Script(`(function (exports, require, module, __filename, __dirname) {${readFileSync(filename, 'utf8')}\n})`, {
    filename,
    cachedData: compiled.has(name.slice(2)) ? readFileSync(join(CODE, name)) : undefined,
  }).runInThisContext()
}

/** Whether this file runs in the context that scripts run in. Jest has others, for which arrays of this one were no arrays. */
const isInContext = () => new Script('Array').runInThisContext() === Array

module.exports = compiled !== null && isInContext() ? load : require

if (require.main === module) module.exports('./cli.cjs')
