"""
What one would write with numpy to have all reductions of a trial: reads the index files, maps the event files, finds
each tensor's bytes and writes the rows that `trialscan scan --reductions all --format csv` writes (not in its order).

    python3 reductions.py TRIAL OUT.csv [--processes N]

Temporary arrays are kept to one for each size, what follows from other numbers is derived, and where a tensor's
elements begin in its record is looked up once for every name and length, then only verified.
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

REDUCTIONS = [prefix + name for prefix in ('', 'abs_') for name in 'min max mean std variance sum prod l1 l2'.split()]
COLUMNS = ['tensor', 'step', 'mode', 'mode_step', 'worker', 'dtype', 'shape', *REDUCTIONS]
DTYPES = {1: 'float32', 2: 'float64', 19: 'float16'}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data, at, end):
    """The fields of a message: number, value (or length), where the value begins."""
    while at < end:
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, after = varint(data, at)
        elif wire == 2:
            value, at = varint(data, at)
            after = at + value
        elif wire in (1, 5):
            value, after = None, at + (8 if wire == 1 else 4)
        else:
            raise ValueError(f'wire type {wire}')
        yield key >> 3, value, at
        at = after


def find(data, at, end, *path):
    """Where the message at the end of a path of field numbers lies."""
    for number in path:
        at, end = next((start, start + size) for found, size, start in fields(data, at, end) if found == number)
    return at, end


def locate(data, start, length):
    """The tensor of a record, from the record's start: head's bytes, where the elements begin, dtype, shape."""
    at, end = find(data, start + 12, start + length - 4, 5, 1, 8)
    dtype, shape, content = 0, [], None
    for number, value, place in fields(data, at, end):
        if number == 1:
            dtype = value
        elif number == 2:
            shape = [
                next((size for field, size, _ in fields(data, p, p + n) if field == 1), 0)
                for dim, n, p in fields(data, place, place + value)
                if dim == 2
            ]
        elif number == 4:
            content = place
    return data[at:content], at - start, content - start, DTYPES[dtype], shape


def reductions(x, scratch):
    n = x.size
    low, high, total, product = x.min().item(), x.max().item(), x.sum().item(), x.prod().item()
    mean = total / n
    np.subtract(x, x.dtype.type(mean), out=scratch)
    variance = np.square(scratch, out=scratch).sum().item() / n
    squares = np.square(x, out=scratch).sum().item()
    a = np.abs(x, out=scratch)
    l1 = a.sum().item()
    mean_abs = l1 / n
    variance_abs = max(0.0, squares / n - mean_abs * mean_abs)
    l2 = math.sqrt(squares)
    return (
        low, high, mean, math.sqrt(variance), variance, total, product, l1, l2,
        a.min().item(), max(-low, high), mean_abs, math.sqrt(variance_abs), variance_abs, l1, abs(product), l1, l2,
    )  # fmt: skip


known = {}
scratches = {}


def rows(trial, path):
    """The rows of an index file, as text."""
    with open(path) as file:
        index = json.load(file)
    meta = index['meta']
    step, worker = os.path.basename(path)[: -len('.json')].split('_', 1)
    out = StringIO()
    writer = csv.writer(out, lineterminator='\n')
    with open(os.path.join(trial, meta['event_file_name']), 'rb') as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for payload in index['tensor_payload']:
        name, start, length = payload['tensorname'], payload['start_idx'], payload['length']
        place = known.get((name, length))
        if place is None or data[start + place[1] : start + place[2]] != place[0]:
            place = known[name, length] = locate(data, start, length)
        _, _, content, dtype, shape = place
        x = np.frombuffer(data, dtype, math.prod(shape), start + content)
        scratch = scratches.get((dtype, x.size))
        if scratch is None:
            scratch = scratches[dtype, x.size] = np.empty(x.size, dtype)
        where = (name, int(step), meta['mode'], meta['mode_step'], worker, dtype, 'x'.join(map(str, shape)))
        writer.writerow(where + reductions(x, scratch))
    return out.getvalue()


def index_files(trial):
    for folder, _, names in sorted(os.walk(os.path.join(trial, 'index'))):
        for name in sorted(names):
            yield os.path.join(folder, name)


def task(job):
    return rows(*job)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('trial')
    parser.add_argument('out')
    parser.add_argument('--processes', type=int, default=1)
    asked = parser.parse_args()
    jobs = [(asked.trial, path) for path in index_files(asked.trial)]
    with open(asked.out, 'w') as out:
        out.write(','.join(COLUMNS) + '\n')
        if asked.processes == 1:
            out.writelines(map(task, jobs))
        else:
            with multiprocessing.Pool(asked.processes) as pool:
                out.writelines(pool.imap(task, jobs, max(1, len(jobs) // (8 * asked.processes))))


np.seterr(all='ignore')
if __name__ == '__main__':
    main()
