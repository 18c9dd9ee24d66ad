"""
smdebug's own writer, for `write`. Reads requests from standard input, a line each: a place, and how many steps of how many
tensors of how many float32. Writes such a trial there and answers with the milliseconds that took.

    PYTHONPATH=smdebug's source python3 smdebug_writer.py

needs smdebug's source with its protobuf classes generated (`protoc -I. --python_out=. smdebug/core/tfevent/proto/*.proto`), numpy,
protobuf and packaging. pandas, psutil and boto3, which local trials don't need, may be missing.
"""

import logging
import sys
import time
from unittest.mock import MagicMock

logging.disable(logging.CRITICAL)
for name in ('pandas', 'psutil', 'boto3', 'boto3.s3', 'boto3.s3.transfer', 'botocore', 'botocore.exceptions', 'botocore.config'):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = MagicMock()

import numpy as np  # noqa: E402
from smdebug.core.collection_manager import CollectionManager  # noqa: E402
from smdebug.core.writer import FileWriter  # noqa: E402


def write(place, steps, tensors, elements):
    data = (np.arange(elements) / 3).astype(np.float32)
    start = time.perf_counter()
    manager = CollectionManager()
    manager.get('default').tensor_names.update(f'tensor{i}' for i in range(tensors))
    manager.export(place, 'worker_0_collections.json')
    for step in range(steps):
        # What its hook does at a step that is saved.
        writer = FileWriter(trial_dir=place, step=step, worker='worker_0')
        for i in range(tensors):
            writer.write_tensor(tdata=data, tname=f'tensor{i}', mode_step=step)
        writer.flush()
        writer.close()
    return (time.perf_counter() - start) * 1000


for line in sys.stdin:
    place, *numbers = line.rstrip('\n').split('\t')
    print(write(place, *map(int, numbers)), flush=True)
