/** Files that Debian's torch writes and reads beside us: each dtype, view, nesting and protocol, numpy's arrays, and random state dicts of a fixed seed. */

import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { trialscan } from './cli/run.js'
import { bytesOfTensor, contentsOf, readContent } from './support/checkpoint-files.js'
import { isRequired } from './support/golden.js'
import { scratchDirectory } from './support/scratch.js'

const PYTHON = '/usr/bin/python3'
const hasTorch = spawnSync(PYTHON, ['-c', 'import torch']).status === 0

const scratch = scratchDirectory('torch-writes')

/** Writes files, and answers.json: of each file the tensors, with a digest of their elements in C order. */
const WRITER = `
import argparse, collections, hashlib, json, numpy, os, random, sys, torch
out = sys.argv[1]
random.seed(20261126)
torch.manual_seed(20261126)
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool, torch.complex64, torch.complex128]
answers = {}

def name_of(dtype):
    return str(dtype).split('.')[1]

def digest(tensor):
    whole = tensor.detach().contiguous().clone()
    storage = whole.storage()
    size = storage.nbytes()
    # Bytes as they would be saved.
    raw = bytes(storage.untyped()) if hasattr(storage, 'untyped') else bytes(storage._untyped())
    return hashlib.sha256(raw[:whole.numel() * whole.element_size()]).hexdigest()

def walk(value, path, found):
    if isinstance(value, torch.Tensor):
        found['.'.join(path)] = {'dtype': name_of(value.dtype), 'shape': list(value.shape), 'sha256': digest(value)}
    elif isinstance(value, numpy.ndarray) and value.dtype.kind != 'U':
        raw = numpy.ascontiguousarray(value).tobytes()
        found['.'.join(path)] = {'dtype': str(value.dtype), 'shape': list(value.shape), 'sha256': hashlib.sha256(raw).hexdigest()}
    elif isinstance(value, dict):
        for key, item in value.items():
            walk(item, path + [str(key)], found)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            walk(item, path + [str(i)], found)

def save(name, value, **options):
    torch.save(value, os.path.join(out, name), **options)
    found = {}
    walk(value, [], found)
    answers[name] = found

def tensor(dtype, shape):
    count = 1
    for size in shape:
        count *= size
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 100, shape).to(dtype)

def view(base):
    kind = random.randrange(8)
    if base.dim() == 0 or base.numel() == 0:
        return base
    if kind == 0:
        return base.transpose(0, base.dim() - 1)
    if kind == 1:
        return base[1:] if base.shape[0] > 1 else base
    if kind == 2:
        return base[::2]
    if kind == 3:
        return base[..., 0]
    if kind == 4:
        return base[:1].expand(3, *base.shape[1:])
    if kind == 5:
        return base.reshape(-1)
    if kind == 6:
        return base.unsqueeze(0).permute(*reversed(range(base.dim() + 1)))
    return torch.nn.Parameter(base) if base.dtype.is_floating_point else base

def nested(depth):
    state = collections.OrderedDict() if random.random() < 0.5 else {}
    bases = []
    for i in range(random.randrange(1, 6)):
        shape = [random.randrange(0, 6) for _ in range(random.randrange(0, 4))]
        base = tensor(random.choice(DTYPES), shape)
        bases.append(base)
        key = i if random.random() < 0.2 else random.choice(['weight', 'bias', 'имя', 'a b', 'x/y', 'layers']) + str(i)
        state[key] = view(random.choice(bases))
    if depth > 0 and random.random() < 0.6:
        state['nested'] = nested(depth - 1)
    if random.random() < 0.3:
        state['items'] = [nested(0), (view(bases[0]), 'text', 1.5, None, 2 ** 70)]
    if random.random() < 0.3:
        state['args'] = argparse.Namespace(lr=0.1, steps=[1, 2])
    return state

for protocol in [2, 3, 4, 5]:
    for dtype in DTYPES:
        base = tensor(dtype, [4, 6])
        state = {'base': base, 'transposed': base.t(), 'row': base[2], 'every_other': base[:, ::2], 'scalar': tensor(dtype, [])}
        save('dtype-%s-%d.pt' % (name_of(dtype), protocol), state, pickle_protocol=protocol)
    for legacy in [False, True]:
        arrays = {'scalar': numpy.float64(2.5), 'text': numpy.array(['a', 'b'])}
        for kind in ['?', 'i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'i8', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16']:
            base = numpy.random.RandomState(1).randint(0, 256, 24 * numpy.dtype(kind).itemsize).astype('u1')
            base = (base & 1 if kind == '?' else base).view(kind).reshape(2, 3, 4)
            arrays[kind] = {'base': base, 'fortran': numpy.asfortranarray(base), 'strided': base[:, ::2], 'none': base[:0], 'one': base[1, 1, 1, ...]}
        save('numpy-%d-%s.pt' % (protocol, legacy), arrays, pickle_protocol=protocol, _use_new_zipfile_serialization=not legacy)
for i in range(300):
    options = {'_use_new_zipfile_serialization': False} if i % 4 == 3 else {'pickle_protocol': 2 + i % 3}
    save('random-%d.pt' % i, nested(2), **options)
with open(os.path.join(out, 'answers.json'), 'w') as file:
    json.dump(answers, file)
`

/** Reads our .npz and .npy of each file as tensors of torch, and says which are not those of torch.load. */
const READER = `
import json, numpy, os, sys, torch
out = sys.argv[1]
wrong, count = [], 0
def tensors(value, path, found):
    if isinstance(value, torch.Tensor):
        found['/'.join(path)] = value.detach()
    elif isinstance(value, dict):
        for key, item in value.items():
            tensors(item, path + [str(key)], found)
    return found
def same(name, ours, theirs):
    global count
    count += 1
    # numpy has no bfloat16: it is float32 there.
    wanted = theirs.float() if theirs.dtype == torch.bfloat16 else theirs
    ours = torch.from_numpy(numpy.ascontiguousarray(ours)).reshape(ours.shape)
    if ours.dtype != wanted.dtype or ours.shape != wanted.shape or ours.numpy().tobytes() != wanted.contiguous().numpy().tobytes():
        wrong.append(name)
for name in sorted(os.listdir(out)):
    if not name.endswith('.npz'):
        continue
    stem = name[:-4]
    arrays = numpy.load(os.path.join(out, name))
    theirs = tensors(torch.load(os.path.join(out, stem + '.pt')), [], {})
    if set(arrays) != {'0/' + key for key in theirs}:
        wrong.append([name, sorted(arrays), sorted(theirs)])
    for key, tensor in theirs.items():
        same(stem + ' ' + key, arrays['0/' + key], tensor)
        same(stem + '/' + key, numpy.load(os.path.join(out, stem, '0', key + '.npy')), tensor)
print(json.dumps({'wrong': wrong, 'count': count}))
`

interface Answer {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly sha256: string
}

describe.skipIf(!hasTorch && !isRequired('torch'))('what torch writes', () => {
  it('has the same tensors here, bit for bit', { timeout: 600_000 }, async () => {
    const program = join(scratch, 'write.py')
    writeFileSync(program, WRITER)
    execFileSync(PYTHON, ['-W', 'ignore', program, scratch], { stdio: ['ignore', 'ignore', 'inherit'] })
    const answers = JSON.parse(readFileSync(join(scratch, 'answers.json'), 'utf8')) as Record<
      string,
      Record<string, Answer>
    >
    expect(Object.keys(answers)).toHaveLength(356)
    const contentOf = readContent(scratch)
    for (const [file, expected] of Object.entries(answers)) {
      const { tensors, unread, problems } = await contentsOf(scratch, file)
      expect([unread, problems], file).toEqual([[], []])
      const found = Object.fromEntries(
        tensors.map(tensor => {
          const sha256 = createHash('sha256').update(bytesOfTensor(tensor, contentOf)).digest('hex')
          return [tensor.name, { dtype: tensor.dtype, shape: tensor.shape, sha256 }]
        }),
      )
      expect(found, file).toEqual(expected)
    }
  })
  it('is read by torch as it was written, from what dump makes of it', { timeout: 600_000 }, async () => {
    const files = readdirSync(scratch).filter(file => /^dtype-\w+-[25]\.pt$/.test(file))
    expect(files).toHaveLength(24)
    for (const file of files) {
      const stem = join(scratch, file.slice(0, -'.pt'.length))
      for (const out of [`${stem}.npz`, stem]) {
        expect((await trialscan('dump', `${stem}.pt`, '--out', out)).code, file).toBe(0)
      }
    }
    const program = join(scratch, 'read.py')
    writeFileSync(program, READER)
    const told = execFileSync(PYTHON, ['-W', 'ignore', program, scratch], { encoding: 'utf8' })
    expect(JSON.parse(told)).toEqual({ wrong: [], count: 24 * 5 * 2 })
  })
})
