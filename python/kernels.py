"""
numpy's kernels, for `trialscan bench` and bench/. First it prints numpy's version. Then it answers requests, a line each, words separated
by tabs:

    moments MS FILE DTYPE       the 18 reductions, a call each, in trialscan's order
    lean MS FILE DTYPE          the same, with what follows from other numbers derived
    meanstd MS FILE DTYPE       mean and std
    minmax MS FILE DTYPE        min and max
    reduce MS FILE DTYPE SHAPE NAME AXIS   a reduction along an axis, or of the whole array (AXIS: all)
    allclose MS A B RTOL ATOL   whether the elements of float32 are all close

The answer: the median of one run in milliseconds, then the numbers.
"""

import math
import sys
from time import perf_counter

import numpy as np


def eighteen(x):
    a = np.abs(x)
    norm = np.linalg.norm
    return (
        x.min(), x.max(), x.mean(), x.std(), x.var(), x.sum(), x.prod(), norm(x, 1), norm(x),
        a.min(), a.max(), a.mean(), a.std(), a.var(), a.sum(), a.prod(), norm(a, 1), norm(a),
    )  # fmt: skip


def lean(x):
    """
    Temporary arrays are the dear part: there is one, used again and again. `square` and `sum` instead of `dot`: a plain
    BLAS is slower, and adds so carelessly that variances of millions of elements are wrong.
    """
    n = x.size
    low, high, total, product = x.min(), x.max(), x.sum(), x.prod()
    mean = total / n
    scratch = np.subtract(x, mean, dtype=x.dtype)
    variance = np.square(scratch, out=scratch).sum() / n
    squares = np.square(x, out=scratch).sum()
    a = np.abs(x, out=scratch)
    l1 = a.sum()
    mean_abs = l1 / n
    variance_abs = max(0.0, float(variance) + float(mean) ** 2 - float(mean_abs) ** 2)
    l2 = math.sqrt(squares)
    return (
        low, high, mean, math.sqrt(variance), variance, total, product, l1, l2,
        a.min(), max(-low, high), mean_abs, math.sqrt(variance_abs), variance_abs, l1, abs(product), l1, l2,
    )  # fmt: skip


KERNELS = {
    'moments': eighteen,
    'lean': lean,
    'meanstd': lambda x: (x.mean(), x.std()),
    'minmax': lambda x: (x.min(), x.max()),
}

REDUCE = {
    'min': lambda x, axis: x.min(axis),
    'max': lambda x, axis: x.max(axis),
    'sum': lambda x, axis: x.sum(axis),
    'std': lambda x, axis: x.std(axis),
    'abs_mean': lambda x, axis: np.abs(x).mean(axis),
    'l2': lambda x, axis: np.linalg.norm(x, axis=axis),
}

loaded = {}


def load(path, dtype):
    """The last two inputs are kept."""
    if (path, dtype) not in loaded:
        while len(loaded) > 1:
            del loaded[next(iter(loaded))]
        loaded[path, dtype] = np.fromfile(path, dtype)
    return loaded[path, dtype]


def work(kernel, file, *rest):
    if kernel == 'allclose':
        a, b = load(file, 'float32'), load(rest[0], 'float32')
        rtol, atol = float(rest[1]), float(rest[2])
        return lambda: (np.allclose(a, b, rtol, atol),)
    x = load(file, rest[0])
    if kernel == 'reduce':
        shape, name, axis = rest[1:]
        array = x.reshape([int(size) for size in shape.split(',')])
        return lambda: np.ravel(REDUCE[name](array, None if axis == 'all' else int(axis)))
    return lambda: KERNELS[kernel](x)


def timed(run, turn_ms):
    run()
    start = perf_counter()
    numbers = run()
    once = perf_counter() - start
    repeats = 1 if once >= 1e-4 else int(1e-4 / max(once, 1e-8)) + 1
    samples = []
    start = perf_counter()
    while not samples or perf_counter() - start < turn_ms / 1e3:
        before = perf_counter()
        for _ in range(repeats):
            run()
        samples.append((perf_counter() - before) / repeats)
    return sorted(samples)[len(samples) // 2] * 1e3, numbers


# Products that leave the range are numbers like any other here.
np.seterr(all='ignore')
print(np.__version__, flush=True)
for line in sys.stdin:
    try:
        kernel, turn_ms, *rest = line.rstrip('\n').split('\t')
        ms, numbers = timed(work(kernel, *rest), float(turn_ms))
        print(repr(ms), *(repr(float(number)) for number in numbers), sep='\t', flush=True)
    except Exception as error:
        print('error', ' '.join(str(error).split()), sep='\t', flush=True)
