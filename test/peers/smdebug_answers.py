"""
What smdebug's own reader finds in trials, as JSON: a line a trial, for each path given.

    PYTHONPATH=smdebug's source python3 smdebug_answers.py PATH...

needs smdebug's source with its protobuf classes generated (`protoc -I. --python_out=. smdebug/core/tfevent/proto/*.proto`), numpy,
protobuf and packaging. pandas, psutil and boto3, which local trials don't need, may be missing.
"""

import json
import logging
import sys
from unittest.mock import MagicMock

logging.disable(logging.CRITICAL)
for name in ('pandas', 'psutil', 'boto3', 'boto3.s3', 'boto3.s3.transfer', 'botocore', 'botocore.exceptions', 'botocore.config'):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = MagicMock()

import numpy as np  # noqa: E402
from smdebug import modes  # noqa: E402
from smdebug.trials import create_trial  # noqa: E402

MODES = {'TRAIN': modes.TRAIN, 'EVAL': modes.EVAL, 'PREDICT': modes.PREDICT, 'GLOBAL': modes.GLOBAL}
REDUCTIONS = ['min', 'max', 'mean', 'std', 'variance', 'sum', 'prod', 'l1', 'l2']


def plain(value):
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), [str(item) for item in value.ravel().tolist()]]
    if isinstance(value, (list, tuple)):
        return ['list', [len(value)], [str(item) for item in value]]
    return [type(value).__name__, [], [str(value)]]


def answer(ask):
    try:
        return ask()
    except Exception as exception:
        return type(exception).__name__


def answers(path):
    trial = create_trial(path)
    found = {'steps': trial.steps(), 'modes': {}, 'collections': {}, 'tensors': {}}
    for name, mode in MODES.items():
        found['modes'][name] = answer(lambda: trial.steps(mode=mode))
    for name in sorted(trial.collections()):
        found['collections'][name] = answer(lambda: sorted(trial.tensor_names(collection=name)))
    for tensor_name in sorted(trial.tensor_names()):
        tensor = trial.tensor(tensor_name)
        steps = {}
        for step in tensor.steps():
            workers = answer(lambda: sorted(tensor.workers(step)))
            worker = workers[0] if isinstance(workers, list) and len(workers) > 1 else None
            value = answer(lambda: plain(tensor.value(step, worker=worker)))
            reductions = {}
            # Of a value that was saved smdebug would compute them.
            for name in REDUCTIONS if isinstance(value, str) else []:
                for is_abs in (False, True):
                    number = answer(lambda: float(tensor.reduction_value(step, name, abs=is_abs)))
                    if not isinstance(number, str):
                        reductions[('abs_' if is_abs else '') + name] = number
            steps[step] = {'workers': workers, 'value': value, 'reductions': reductions}
        found['tensors'][tensor_name] = steps
    return found


for path in sys.argv[1:]:
    print(json.dumps(answers(path), sort_keys=True))
