"""
What one would write with numpy or torch to have reductions of a checkpoint as CSV: all 18, or whether there is a NaN and the
largest absolute value. Both widen bfloat16 to float32, numpy by a shift.

    python3 checkpoints.py numpy|torch all|few DIR OUT.csv    of DIR/model.safetensors (torch: of DIR/model.pt where there is one)
    python3 checkpoints.py torch save DIR OUT                 writes OUT/pt/model.pt, and OUT/dcp/__0_0.distcp and __1_0.distcp
                                                              as two ranks would; prints where the chunks lie, as JSON
"""

import csv
import json
import math
import mmap
import os
import sys
import warnings

REDUCTIONS = [prefix + name for prefix in ('', 'abs_') for name in 'min max mean std variance sum prod l1 l2'.split()]


def entries(path):
    """The header's entries in the order of their bytes, and the file: name, dtype, shape, where it begins."""
    with open(path, 'rb') as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    length = int.from_bytes(data[:8], 'little')
    header = json.loads(data[8 : 8 + length])
    header.pop('__metadata__', None)
    return [(n, e['dtype'], e['shape'], 8 + length + e['data_offsets'][0]) for n, e in header.items()], data


def arrays(path):
    """The bits of each tensor: uint16 of bfloat16."""
    import numpy as np

    found, data = entries(path)
    for name, dtype, shape, start in found:
        yield name, np.frombuffer(data, '<u2' if dtype == 'BF16' else '<f4', math.prod(shape), start)


def widened(x):
    import numpy as np

    if x.dtype == np.float32:
        return x
    bits = x.astype(np.uint32)
    bits <<= 16
    return bits.view(np.float32)


def tensors(folder):
    import torch

    path = os.path.join(folder, 'model.pt')
    if os.path.exists(path):
        yield from torch.load(path, map_location='cpu').items()
        return
    # Nobody writes to the map.
    warnings.filterwarnings('ignore', 'The given buffer is not writable')
    found, data = entries(os.path.join(folder, 'model.safetensors'))
    for name, dtype, shape, start in found:
        of = torch.bfloat16 if dtype == 'BF16' else torch.float32
        yield name, torch.frombuffer(data, dtype=of, count=math.prod(shape), offset=start).reshape(shape)


def of_numpy(folder, few):
    import numpy as np
    from reductions import reductions

    np.seterr(all='ignore')
    for name, bits in arrays(os.path.join(folder, 'model.safetensors')):
        x = widened(bits)
        if few:
            yield name, np.isnan(x).sum(), np.abs(x).max()
        else:
            yield name, *reductions(x, np.empty(x.size, np.float32))


def of_torch(folder, few):
    for name, tensor in tensors(folder):
        x = tensor.float()
        if few:
            yield name, x.isnan().sum().item(), x.abs().max().item()
            continue
        n = x.numel()
        low, high, total, product = x.min().item(), x.max().item(), x.sum().item(), x.prod().item()
        mean = total / n
        variance = (x - mean).square_().sum().item() / n
        squares = x.square().sum().item()
        a = x.abs()
        l1 = a.sum().item()
        variance_abs = max(0.0, squares / n - (l1 / n) ** 2)
        l2 = math.sqrt(squares)
        yield (
            name, low, high, mean, math.sqrt(variance), variance, total, product, l1, l2,
            a.min().item(), max(-low, high), l1 / n, math.sqrt(variance_abs), variance_abs, l1, abs(product), l1, l2,
        )  # fmt: skip


def save(folder, out):
    import torch

    for name in ('pt', 'dcp'):
        os.makedirs(os.path.join(out, name))
    all_tensors = dict(tensors(folder))
    torch.save(all_tensors, os.path.join(out, 'pt', 'model.pt'))
    places = {}
    for rank in range(2):
        file = f'__{rank}_0.distcp'
        with open(os.path.join(out, 'dcp', file), 'wb') as chunks:
            for name, tensor in all_tensors.items():
                half = tensor.shape[0] // 2
                start = chunks.tell()
                torch.save(tensor[:half].clone() if rank == 0 else tensor[half:].clone(), chunks)
                place = {'file': file, 'start': start, 'length': chunks.tell() - start}
                places.setdefault(name, []).append({'first': rank * half, 'rows': half, 'place': place})
    print(json.dumps(places))


def main():
    module, asked, folder, out = sys.argv[1:]
    if asked == 'save':
        save(folder, out)
        return
    rows = (of_numpy if module == 'numpy' else of_torch)(folder, asked == 'few')
    with open(out, 'w') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(['tensor', *(['nan_count', 'abs_max'] if asked == 'few' else REDUCTIONS)])
        writer.writerows(rows)


if __name__ == '__main__':
    main()
