"""
What smdebug's own reader finds in trials, as JSON: a line a trial, for each path given.

    PYTHONPATH=smdebug's source python3 smdebug_answers.py PATH...

needs smdebug's source with its protobuf classes generated (`protoc -I. --python_out=. smdebug/core/tfevent/proto/*.proto`), numpy,
protobuf and packaging. pandas, psutil and boto3, which local trials don't need, may be missing.
Of a trial in a directory named `reductions` those that numpy computes of saved values are told, too.
"""

import json
import logging
import os
import sys
from unittest.mock import MagicMock

logging.disable(logging.CRITICAL)
for name in ('pandas', 'psutil', 'boto3', 'boto3.s3', 'boto3.s3.transfer', 'botocore', 'botocore.exceptions', 'botocore.config'):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = MagicMock()

# The trials are whole.
os.environ.setdefault('TRAINING_END_DELAY_REFRESH', '0')

import numpy as np  # noqa: E402
from smdebug import modes  # noqa: E402
from smdebug.trials import create_trial  # noqa: E402

MODES = {'TRAIN': modes.TRAIN, 'EVAL': modes.EVAL, 'PREDICT': modes.PREDICT, 'GLOBAL': modes.GLOBAL}
REDUCTIONS = ['min', 'max', 'mean', 'std', 'variance', 'sum', 'prod', 'l1', 'l2']


def plain(value):
    if isinstance(value, np.ndarray) and value.dtype.kind == 'c':
        return [str(value.dtype), list(value.shape), [str(part) for item in value.ravel().tolist() for part in (item.real, item.imag)]]
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


def saves(config):
    """At which of the first steps of each mode a collection is saved."""
    return {name: [step for step in range(12) if config.should_save_step(mode, step)] for name, mode in MODES.items()}


def reductions(config):
    plain = config.reductions + [f'{norm}_norm' for norm in config.norms]
    absolute = config.abs_reductions + [f'{norm}_norm' for norm in config.abs_norms]
    return sorted(plain + ['abs_' + name for name in absolute])


def collection(trial, name):
    config = trial.collection(name)
    return {
        'members': answer(lambda: sorted(trial.tensor_names(collection=name))),
        'saves': answer(lambda: saves(config.save_config)),
        'reductions': answer(lambda: reductions(config.reduction_config)),
        'saveRawTensor': answer(lambda: config.reduction_config.save_raw_tensor),
        'saveShape': answer(lambda: config.reduction_config.save_shape),
    }


def at_step(trial, tensor, step, computes):
    workers = answer(lambda: sorted(tensor.workers(step)))
    found = {'workers': workers, 'values': {}}
    for worker in workers if isinstance(workers, list) else []:
        value = answer(lambda: plain(tensor.value(step, worker=worker)))
        shape = answer(lambda: list(tensor.shape(step, worker=worker)))
        reductions = {}
        # Of a value that was saved smdebug would compute them.
        for name in REDUCTIONS if computes or isinstance(value, str) else []:
            for is_abs in (False, True):
                number = answer(lambda: float(tensor.reduction_value(step, name, worker=worker, abs=is_abs)))
                if not isinstance(number, str):
                    reductions[('abs_' if is_abs else '') + name] = number
        found['values'][worker] = {'value': value, 'shape': shape, **({'reductions': reductions} if reductions else {})}
    return found


def answers(path):
    trial = create_trial(path)
    found = {'steps': trial.steps(), 'workers': answer(lambda: sorted(trial.workers())), 'collections': {}, 'tensors': {}}
    found['modes'] = {name: answer(lambda: trial.steps(mode=mode)) for name, mode in MODES.items()}
    found['modeSteps'] = {step: [trial.mode(step).name, trial.mode_step(step)] for step in trial.steps()}
    for name in sorted(trial.collections()):
        found['collections'][name] = collection(trial, name)
    for name in sorted(trial.tensor_names()):
        tensor = trial.tensor(name)
        computes = os.path.basename(path) == 'reductions'
        steps = {step: at_step(trial, tensor, step, computes) for step in tensor.steps()}
        found['tensors'][name] = {'originalName': tensor.original_name, 'steps': steps}
    return found


for path in sys.argv[1:]:
    print(json.dumps(answers(path), sort_keys=True))
