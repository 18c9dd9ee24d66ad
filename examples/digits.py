"""Digits to train with, without a download: a font of 5 × 7 dots, enlarged, moved about, and with noise."""
import torch

FONT = """01110 00100 01110 11111 00010 11111 00110 11111 01110 01110
10001 01100 10001 00010 00110 10000 01000 00001 10001 10001
10011 00100 00001 00100 01010 11110 10000 00010 10001 10001
10101 00100 00010 00010 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 10001 00010 10001 10001 01000 10001 00010
01110 01110 11111 01110 00010 01110 01110 01000 01110 01100"""


def digits(count, seed):
    """Images of 28 × 28 pixels from 0 to 1, and their classes."""
    random = torch.Generator().manual_seed(seed)
    rows = [line.split() for line in FONT.splitlines()]
    glyphs = torch.tensor([[[float(dot) for dot in row[digit]] for row in rows] for digit in range(10)])
    glyphs = glyphs.repeat_interleave(3, 1).repeat_interleave(3, 2)
    classes = torch.randint(10, (count,), generator=random)
    images = torch.zeros(count, 1, 28, 28)
    for image, digit in zip(images, classes):
        top, left = torch.randint(8, (2,), generator=random)
        image[0, top : top + 21, left + 2 : left + 17] = glyphs[digit]
    noise = torch.rand(images.shape, generator=random)
    return (0.8 * images + 0.2 * noise).clamp(0, 1), classes
