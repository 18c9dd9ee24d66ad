"""
What one would write with numpy to compare two trials, or two checkpoints of one file of safetensors each: maps the files of
both and tells of each tensor what `trialscan diff` does: whether the bits are equal, and if not, how many elements differ and
are not close, the largest and the mean |a - b|, the largest |a - b| / |b|, units of the last place and their percentiles, the
cosine and the ratio of norms, where the largest difference lies, both values there, and the norm of the difference over a's.

    python3 differences.py A B OUT.csv [--processes N]
"""

import argparse
import csv
import json
import math
import mmap
import multiprocessing
import os
from io import StringIO

import numpy as np
from checkpoints import arrays, widened
from reductions import index_files, locate

known = {}


def tensors(trial, path):
    """The tensors of an index file, by name, as they lie in the event file."""
    with open(path) as file:
        index = json.load(file)
    with open(os.path.join(trial, index['meta']['event_file_name']), 'rb') as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    found = {}
    for payload in index['tensor_payload']:
        name, start, length = payload['tensorname'], payload['start_idx'], payload['length']
        place = known.get((name, length))
        if place is None or data[start + place[1] : start + place[2]] != place[0]:
            place = known[name, length] = locate(data, start, length)
        _, _, content, dtype, shape = place
        found[name] = np.frombuffer(data, dtype, math.prod(shape), start + content)
    return found


def ordered(x):
    narrow, wide, sign = (np.int32, np.int64, 0x7FFFFFFF) if x.itemsize == 4 else (np.int16, np.int32, 0x7FFF)
    bits = x.view(narrow).astype(wide)
    return np.where(bits < 0, -(bits & sign), bits)


def difference(a, b):
    """Of arrays of float32, or of the bits of bfloat16."""
    bits = np.int32 if a.itemsize == 4 else np.int16
    if np.array_equal(a.view(bits), b.view(bits)):
        return None
    ulps = np.abs(ordered(a) - ordered(b))
    # Of a sample, as diff has them.
    parts = np.percentile(ulps[:: ulps.size // 8192 + 1], [50, 90, 99])
    a, b = widened(a), widened(b)
    apart = np.abs(a - b)
    size = np.abs(b)
    most = int(apart.argmax())
    norm_a, norm_b = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    return (
        int((a != b).sum()), int((apart > 0).sum()), float(apart.max()), float((apart / size).max()), float(apart.mean()),
        int(ulps.max()), *parts, float(np.dot(a, b)) / (norm_a * norm_b), norm_a / norm_b,
        most, float(a[most]), float(b[most]), float(np.linalg.norm(apart)) / norm_a,
    )  # fmt: skip


def rows(a, b, path):
    out = StringIO()
    writer = csv.writer(out, lineterminator='\n')
    if path.endswith('.safetensors'):
        step, found, others = 0, dict(arrays(path)), dict(arrays(os.path.join(b, os.path.basename(path))))
    else:
        step = int(os.path.basename(path).split('_', 1)[0])
        found, others = tensors(a, path), tensors(b, os.path.join(b, os.path.relpath(path, a)))
    for name, x in found.items():
        told = difference(x, others[name])
        if told is not None:
            writer.writerow((step, name, *told))
    return out.getvalue()


def task(job):
    return rows(*job)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('a')
    parser.add_argument('b')
    parser.add_argument('out')
    parser.add_argument('--processes', type=int, default=1)
    asked = parser.parse_args()
    checkpoint = os.path.join(asked.a, 'model.safetensors')
    paths = [checkpoint] if os.path.exists(checkpoint) else index_files(asked.a)
    jobs = [(asked.a, asked.b, path) for path in paths]
    with open(asked.out, 'w') as out:
        if asked.processes == 1:
            out.writelines(map(task, jobs))
        else:
            with multiprocessing.Pool(asked.processes) as pool:
                out.writelines(pool.imap(task, jobs))


np.seterr(all='ignore')
if __name__ == '__main__':
    main()
