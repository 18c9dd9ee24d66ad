/** The facts in the names of files that hold one tensor each, as dumping tools write them. */

import { entryOf } from '../../../base/maps.js'

export interface FileNameFacts {
  /** The tensor's name, if the file has no other. */
  readonly tensor: string
  readonly worker?: string
  readonly order?: number
}

/** Tags of SGLang's dumper that are no part of a name: those that say where a dump belongs, or tell ranks apart. */
const OWN_TAGS = /^(?:name|step|dump_index|(?:rank|tp|pp|dp|ep|attn_tp|attn_dp|moe_ep|moe_tp)(?:_rank|_size)?)$/

/** A path without its directories and its extension. */
export function stemOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return name.replace(/\.(?:pt|pth|bin|ckpt|pkl|npy)$/, '')
}

/** The facts in a file's name. @param siblings paths of the same checkpoint */
export function fileNameFacts(path: string, siblings: readonly string[]): FileNameFacts {
  const dump = dumpFacts(siblings).get(path)
  if (dump !== undefined) return dump
  const stem = stemOf(path)
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

/** The name with those tags that tell dumps of one name apart. */
function taggedName(tags: ReadonlyMap<string, string>): string {
  let name = tags.get('name')!
  for (const [key, value] of tags) if (!OWN_TAGS.test(key)) name += `.${key}=${value}`
  return name
}

const factsOfDumps = new WeakMap<readonly string[], ReadonlyMap<string, FileNameFacts>>()

/** The facts about the files of SGLang's dumper among others, by path. */
function dumpFacts(paths: readonly string[]): ReadonlyMap<string, FileNameFacts> {
  const known = factsOfDumps.get(paths)
  if (known !== undefined) return known
  const groups = new Map<string, { readonly path: string; readonly index: number; readonly facts: FileNameFacts }[]>()
  for (const path of paths) {
    const tags = sglangTags(stemOf(path))
    if (tags === null) continue
    const [tensor, rank, index] = [taggedName(tags), tags.get('rank'), Number(tags.get('dump_index'))]
    const facts = {
      tensor,
      ...(rank !== undefined && /^\d+$/.test(rank) && { worker: `rank_${Number(rank)}` }),
      ...(Number.isSafeInteger(index) && { order: index }),
    }
    const group = [tensor, tags.get('step'), rank, directoryOf(path)].join('\0')
    entryOf(groups, group, () => []).push({ path, index, facts })
  }
  const all = new Map<string, FileNameFacts>()
  for (const files of groups.values()) {
    // Dumps with the same name, step and rank are counted.
    files.sort((a, b) => a.index - b.index)
    for (const [before, { path, facts }] of files.entries()) {
      all.set(path, before === 0 ? facts : { ...facts, tensor: `${facts.tensor}#${before + 1}` })
    }
  }
  factsOfDumps.set(paths, all)
  return all
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/') + 1)
}
