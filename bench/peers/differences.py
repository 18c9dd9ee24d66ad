"""
What one would write with numpy to compare two trials: maps the event files of both and tells of each tensor what
`trialscan diff` does: whether the bits are equal, and if not, how many elements differ and are not close, the largest
and the mean |a - b|, the largest |a - b| / |b|, units of the last place and their percentiles, the cosine and the ratio of
norms, and where the largest difference lies.

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
    bits = x.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def difference(a, b):
    if np.array_equal(a.view(np.int32), b.view(np.int32)):
        return None
    apart = np.abs(a - b)
    size = np.abs(b)
    ulps = np.abs(ordered(a) - ordered(b))
    norm_a, norm_b = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    return (
        int((a != b).sum()), int((apart > 0).sum()), float(apart.max()), float((apart / size).max()), float(apart.mean()),
        int(ulps.max()), *np.percentile(ulps, [50, 90, 99]), float(np.dot(a, b)) / (norm_a * norm_b), norm_a / norm_b,
        int(apart.argmax()),
    )  # fmt: skip


def rows(a, b, path):
    out = StringIO()
    writer = csv.writer(out, lineterminator='\n')
    step = int(os.path.basename(path).split('_', 1)[0])
    others = tensors(b, os.path.join(b, os.path.relpath(path, a)))
    for name, x in tensors(a, path).items():
        found = difference(x, others[name])
        if found is not None:
            writer.writerow((step, name, *found))
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
    jobs = [(asked.a, asked.b, path) for path in index_files(asked.a)]
    with open(asked.out, 'w') as out:
        if asked.processes == 1:
            out.writelines(map(task, jobs))
        else:
            with multiprocessing.Pool(asked.processes) as pool:
                out.writelines(pool.imap(task, jobs))


np.seterr(all='ignore')
if __name__ == '__main__':
    main()
