/** Modules that are loaded when they are first needed. */

/** A function that calls `load` once, however often it is called: to ask for a module again takes longer than to read a small file. */
export function lazily<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined
  return () => {
    loaded ??= load().catch(error => {
      loaded = undefined
      throw error
    })
    return loaded
  }
}
