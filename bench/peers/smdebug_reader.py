"""
smdebug's own reader, asked for every value of trials that smdebug.ts has spoilt. Reads paths of trials from standard
input, a line each, and answers each with a line of JSON: how opening it ended, and every value or exception.

    python3 smdebug_reader.py SECONDS < paths

needs smdebug on PYTHONPATH, its protobuf classes generated (`protoc -I. --python_out=. smdebug/core/tfevent/proto/*.proto`),
and numpy, protobuf, boto3 and packaging. pandas and psutil, which only its profiler calls, may be missing.

Each trial has a process of its own; one that has not ended after SECONDS hangs.
"""

import json
import logging
import os
import select
import signal
import sys
import time
from unittest.mock import MagicMock

logging.disable(logging.CRITICAL)
for name in ('pandas', 'psutil'):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = MagicMock()

import numpy as np  # noqa: E402
from smdebug.trials import create_trial  # noqa: E402

TENSORS = ['fc.weight', 'fc.bias', 'words', 'count', 'loss']
STEPS = [0, 1, 2]


def plain(value):
    """A value as JSON: type, shape and elements as text."""
    if isinstance(value, np.ndarray):
        return {'value': [str(value.dtype), list(value.shape), [str(item) for item in value.ravel().tolist()]]}
    return {'value': [type(value).__name__, None, str(value)]}


def error(exception):
    kind = type(exception)
    name = kind.__name__ if kind.__name__ != 'error' else f'{kind.__module__}.error'
    return {'error': name, 'message': str(exception)[:200]}


def ask(path, write):
    """Writes a line for the trial, and one for each value, as soon as it is known."""
    try:
        trial = create_trial(path)
    except Exception as exception:
        return write({'open': error(exception)})
    write({'open': None})
    for step in STEPS:
        for tensor in TENSORS:
            try:
                answer = plain(trial.tensor(tensor).value(step))
            except Exception as exception:
                answer = error(exception)
            write({'tensor': tensor, 'step': step, **answer})


def run(path, seconds):
    """@returns the lines that a process of its own has written, and how it ended"""
    reader, writer = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        with os.fdopen(writer, 'w') as out:
            ask(path, lambda line: print(json.dumps(line), file=out, flush=True))
        os._exit(0)
    os.close(writer)
    text = b''
    while True:
        left = started + seconds - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            os.kill(child, signal.SIGKILL)
            break
        piece = os.read(reader, 1 << 16)
        if piece == b'':
            break
        text += piece
    os.close(reader)
    _, status = os.waitpid(child, 0)
    ended = 'ended' if status == 0 else 'hang' if os.WTERMSIG(status) == signal.SIGKILL else f'status {status}'
    lines = [json.loads(line) for line in text.decode().splitlines()]
    return {'path': path, 'ended': ended, 'seconds': round(time.monotonic() - started, 1), 'lines': lines}


for line in sys.stdin:
    print(json.dumps(run(line.rstrip('\n'), float(sys.argv[1]))), flush=True)
