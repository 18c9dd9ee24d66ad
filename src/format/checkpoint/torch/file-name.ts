/** The facts in the names of files that hold one tensor each, as dumping tools write them. */

export interface FileNameFacts {
  /** The tensor's name, if the file has no other. */
  readonly tensor: string
  readonly worker?: string
  readonly order?: number
}

/** Tags of SGLang's dumper that tell ranks apart, as `rank` does. */
const RANK_TAGS = /^(?:rank|tp|pp|dp|ep|attn_tp|attn_dp|moe_ep|moe_tp)(?:_rank|_size)?$/

/** A path without its directories and its extension. */
export function stemOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return name.replace(/\.(?:pt|pth|bin|ckpt|pkl|npy)$/, '')
}

/** @param siblings paths of the same checkpoint */
export function fileNameFacts(path: string, siblings: readonly string[]): FileNameFacts {
  const stem = stemOf(path)
  const tags = sglangTags(stem)
  if (tags !== null) return sglangFacts(tags, path, siblings)
  // TensorRT-LLM: <loop>.<module path>-<input|output>.<param>
  const module = /^\d+\.(.+-(?:input|output)\..+)$/.exec(stem)
  return { tensor: module ? module[1]! : stem }
}

/** `step=1___rank=0___dump_index=2___name=model.embed___layer=3`; null: another name. */
function sglangTags(stem: string): ReadonlyMap<string, string> | null {
  if (!stem.includes('___')) return null
  const tags = new Map<string, string>()
  for (const part of stem.split('___')) {
    const at = part.indexOf('=')
    if (at <= 0) return null
    tags.set(part.slice(0, at), part.slice(at + 1))
  }
  return tags.has('name') ? tags : null
}

function sglangFacts(tags: ReadonlyMap<string, string>, path: string, siblings: readonly string[]): FileNameFacts {
  const [rank, index] = [tags.get('rank'), Number(tags.get('dump_index'))]
  const before = earlierOf(siblings).get(path) ?? 0
  return {
    tensor: `${taggedName(tags)}${before === 0 ? '' : `#${before + 1}`}`,
    ...(rank !== undefined && /^\d+$/.test(rank) && { worker: `rank_${Number(rank)}` }),
    ...(Number.isSafeInteger(index) && { order: index }),
  }
}

/** The name with those tags that tell dumps of one name apart. */
function taggedName(tags: ReadonlyMap<string, string>): string {
  const others = [...tags].filter(([key]) => !['name', 'step', 'dump_index'].includes(key) && !RANK_TAGS.test(key))
  return [tags.get('name')!, ...others.map(([key, value]) => `${key}=${value}`)].join('.')
}

const earlier = new WeakMap<readonly string[], ReadonlyMap<string, number>>()

/** The number of earlier dumps with the same name, step and rank, for each file. */
function earlierOf(paths: readonly string[]): ReadonlyMap<string, number> {
  const known = earlier.get(paths)
  if (known !== undefined) return known
  const groups = new Map<string, { readonly path: string; readonly index: number }[]>()
  for (const path of paths) {
    const tags = sglangTags(stemOf(path))
    if (tags === null) continue
    const group = JSON.stringify([taggedName(tags), tags.get('step'), tags.get('rank'), directoryOf(path)])
    const files = groups.get(group) ?? []
    files.push({ path, index: Number(tags.get('dump_index')) })
    groups.set(group, files)
  }
  const counts = new Map<string, number>()
  for (const files of groups.values()) {
    if (files.length === 1) continue
    files.sort((a, b) => a.index - b.index)
    for (const [count, { path }] of files.entries()) counts.set(path, count)
  }
  earlier.set(paths, counts)
  return counts
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1)
}
