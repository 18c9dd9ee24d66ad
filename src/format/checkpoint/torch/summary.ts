/** The content of a pickle besides tensors: its scalars, the classes it names, and those that no checkpoint needs. */

import { KIND, type Pickle } from '../pickle/tape.js'
import { numpyScalarAt } from './numpy.js'

/** Modules whose functions do what a checkpoint never needs: run code or commands, reach the network, write files. */
const DANGEROUS =
  /^(?:os|nt|posix|subprocess|sys|shutil|socket|socketserver|ssl|http|urllib|urllib2|requests|httpx|aiohttp|ftplib|smtplib|telnetlib|webbrowser|importlib|imp|pkgutil|runpy|code|codeop|pty|pdb|bdb|timeit|trace|cProfile|profile|ctypes|cffi|_ctypes|multiprocessing|asyncio|threading|signal|pickle|_pickle|cPickle|dill|cloudpickle|joblib|marshal|shelve|types|inspect|gc|tempfile|pathlib|io|_io|fileinput|glob|zipimport|site|venv|ensurepip|pip|distutils|setuptools|commands|popen2|platform|getpass|logging|idlelib|lib2to3|doctest|unittest|test|pydoc|uuid|xmlrpc|paramiko|mlflow|nltk|numpy\.testing|numpy\.f2py|numpy\.distutils|torch\.hub|torch\.package|torch\.jit|torch\.utils\.cpp_extension|torch\.utils\.collect_env|torch\.utils\.bottleneck|torch\.utils\.data\.datapipes|torch\.fx|torch\.distributed\.run|torch\.distributed\.launch)(?:\.|$)/
/** Names of modules that are harmless but for these. */
const DANGEROUS_NAMES =
  /^(?:(?:builtins|__builtin__)\.(?:eval|exec|execfile|compile|open|file|input|raw_input|__import__|setattr|delattr|globals|locals|vars|breakpoint|getattr|apply|memoryview|help|exit|quit)|operator\.(?:attrgetter|methodcaller|itemgetter)|functools\.(?:partial|reduce)|torch\.(?:load|serialization\.load|storage\._load_from_bytes|_dynamo\..*|_inductor\..*)|numpy\.(?:load|loadtxt|fromfile|memmap)|bdb\..*|_codecs\.(?:decode|lookup)|codecs\.(?:open|decode))$/
/** The globals of torch and pathlib in ordinary checkpoints. */
const HARMLESS =
  /^pathlib\.(?:_local\.)?(?:Pure|Posix|Windows)\w*Path$|^types\.SimpleNamespace$|^torch\.fx\.immutable_collections\./
/** The globals of plain checkpoints. */
const USUAL =
  /^(?:torch\.(?:\w+Storage|storage\.\w+Storage|cuda\.\w+Storage|_utils\._rebuild_\w+|_tensor\._rebuild_\w+|Size|device|strided|distributed\.[\w.]+|Tensor|nn\.parameter\.\w+|float\w+|bfloat\w*|u?int\w+|bool|complex\w+|serialization\._get_layout)|collections\.OrderedDict)$/
/** `getattr` of an enum is how Python 3.11 pickles its members. */
const ENUM_GETATTR = 'builtins.getattr'

const MAX_FACTS = 20
const MAX_FACT_LENGTH = 120

/** All classes and functions that a pickle names, sorted. */
export function globalsOf(pickle: Pickle): readonly string[] {
  return [...pickle.globalNames].sort()
}

/** The globals that run code, or reach what a checkpoint has no business with. */
export function dangerousOf(pickle: Pickle): readonly string[] {
  const names = globalsOf(pickle).filter(name => {
    if (HARMLESS.test(name)) return false
    if (name === ENUM_GETATTR) return !isGetattrOfEnums(pickle)
    return DANGEROUS.test(name) || DANGEROUS_NAMES.test(name)
  })
  return names
}

/** True if each getattr takes a member of the pickle's own class by name, as for enums. */
function isGetattrOfEnums(pickle: Pickle): boolean {
  for (let handle = 0; handle < pickle.nodeCount; handle++) {
    if (pickle.calleeName(handle) !== ENUM_GETATTR) continue
    const [owner, key] = [pickle.argument(handle, 0), pickle.argument(handle, 1)]
    const name = owner === undefined ? undefined : pickle.globalName(owner)
    const isEnum =
      name !== undefined &&
      !/^(?:builtins|__builtin__)\./.test(name) &&
      !DANGEROUS.test(name) &&
      /\.[A-Z_]\w*$/.test(name)
    if (!isEnum || key === undefined || !/^[A-Za-z]\w*$/.test(pickle.text(key) ?? '')) return false
  }
  return true
}

/** Classes that plain checkpoints do not have. */
export function foreignOf(pickle: Pickle): readonly string[] {
  return globalsOf(pickle).filter(name => !USUAL.test(name))
}

/** The warning about globals that run code. */
export function warningOf(names: readonly string[]): string {
  return `loads ${names.slice(0, 5).join(', ')}${names.length > 5 ? `, and ${names.length - 5} more` : ''}: do not open this with torch.load`
}

/** The metadata of a file, as text. */
export function metadataOf(pickle: Pickle, layout: string): ReadonlyMap<string, string> {
  const facts = new Map<string, string>([['format', `torch.save, ${layout}`]])
  const dangerous = dangerousOf(pickle)
  if (dangerous.length > 0) facts.set('warning', warningOf(dangerous))
  const root = pickle.dictOf(pickle.root)
  if (root === undefined) return facts
  for (let i = 0; i < pickle.size(root) && facts.size < MAX_FACTS; i += 2) {
    const key = pickle.text(pickle.link(root, i))
    const value = pickle.link(root, i + 1)
    const text = scalarText(pickle, value)
    if (key !== undefined && text !== undefined && !facts.has(key)) facts.set(key.slice(0, MAX_FACT_LENGTH), text)
  }
  return facts
}

function scalarText(pickle: Pickle, value: number): string | undefined {
  const kind = pickle.kind(value)
  if (kind === KIND.true || kind === KIND.false) return kind === KIND.true ? 'true' : 'false'
  const scalar = pickle.text(value) ?? pickle.numeric(value) ?? numpyScalarAt(pickle, value)
  return scalar === undefined ? undefined : `${scalar}`.slice(0, MAX_FACT_LENGTH)
}
