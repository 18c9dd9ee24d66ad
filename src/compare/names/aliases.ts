/** Matches names of two runs that differ only by prefixes, which PyTorch's wrappers put before the names of a module. */

/** Prefixes anywhere in a name: torch.compile and FSDP wrap modules within modules. */
const WRAPPERS = /(?<=^|\.)(?:_orig_mod|_fsdp_wrapped_module)\./g
/** Prefixes at the start of a name, possibly several: DataParallel, the base model of a head, PEFT, and the keys under which scripts save a model. */
const PREFIX = /^(?:base_model\.model|module|model|state_dict|model_state_dict)\./

/** Names that match without prefixes. */
export interface NameAliases {
  /** Names of the first run, with their names in the second. */
  readonly names: ReadonlyMap<string, string>
  /** The prefixes that one run has and the other lacks, such as `module.`. */
  readonly first: readonly string[]
  readonly second: readonly string[]
}

/**
 * Pairs names without a counterpart that are equal without prefixes.
 * @param namesA the names of the first run that the second lacks
 * @param namesB the names of the second run that the first lacks
 * @returns null if there are none
 */
export function aliasesOf(namesA: readonly string[], namesB: readonly string[]): NameAliases | null {
  if (namesA.length === 0 || namesB.length === 0) return null
  const [ofA, ofB] = [namesByCore(namesA), namesByCore(namesB)]
  const names = new Map<string, string>()
  const [first, second] = [new Set<string>(), new Set<string>()]
  for (const [core, a] of ofA) {
    const b = ofB.get(core)
    // A core that two names of a run share is ambiguous.
    if (a === null || b === undefined || b === null) continue
    names.set(a, b)
    const [pieces, others] = [stripped(a).prefixes, stripped(b).prefixes]
    for (const piece of without(pieces, others)) first.add(piece)
    for (const piece of without(others, pieces)) second.add(piece)
  }
  return names.size === 0 ? null : { names, first: [...first], second: [...second] }
}

/** Names by what is left of them without prefixes; null if several have it. */
export function namesByCore(names: readonly string[]): Map<string, string | null> {
  const aliases = new Map<string, string | null>()
  for (const name of names) {
    const core = coreOf(name)
    aliases.set(core, aliases.has(core) ? null : name)
  }
  return aliases
}

/** A name without prefixes of wrappers. */
export function coreOf(name: string): string {
  return stripped(name).core
}

function stripped(name: string): { readonly core: string; readonly prefixes: readonly string[] } {
  const prefixes: string[] = name.match(WRAPPERS) ?? []
  let core = name.replace(WRAPPERS, '')
  for (let piece = PREFIX.exec(core)?.[0]; piece !== undefined; piece = PREFIX.exec(core)?.[0]) {
    prefixes.push(piece)
    core = core.slice(piece.length)
  }
  return { core, prefixes }
}

/** The pieces of one list that the other lacks, counted by occurrence. */
function without(pieces: readonly string[], others: readonly string[]): readonly string[] {
  const unpaired = [...others]
  return pieces.filter(piece => {
    const at = unpaired.indexOf(piece)
    if (at >= 0) unpaired.splice(at, 1)
    return at < 0
  })
}

/** An output head that only one run has, and that equals the embeddings beside it: the other ties it to its own. */
export interface TiedTensor {
  readonly tensor: string
  readonly only: 'first' | 'second'
  /** The embeddings of the run that lacks it. */
  readonly tiedTo: string
  /** The number of its values, by workers and steps, that equal the embeddings. Those that don't are missing. */
  readonly count: number
}

const HEADS = /(?:^|\.)(?:lm_head|output_layer|embed_out)\.weight$|^(?:model\.)?output\.weight$/
const EMBEDDINGS = /(?:^|\.)(?:embed_tokens|wte|word_embeddings|tok_embeddings|embed_in)\.weight$/

/** One value that may be tied. @param names the names of the run that lacks it @returns null if it is no head, or that run has a head or no embeddings */
export function tiedHead(tensor: string, only: 'first' | 'second', names: readonly string[]): TiedTensor | null {
  if (!HEADS.test(tensor) || names.some(name => HEADS.test(name))) return null
  const tiedTo = embeddingsAmong(names)
  return tiedTo === undefined ? null : { tensor, only, tiedTo, count: 1 }
}

export function embeddingsAmong(names: readonly string[]): string | undefined {
  return names.find(name => EMBEDDINGS.test(name))
}
