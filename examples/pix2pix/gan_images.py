"""Pairs of a label map and an image, drawn at random, and PNG files of them."""

import struct
import zlib

import torch

SIDE = 16
KINDS, COLOURS = 4, 3
PALETTE = torch.tensor([[0.3, 0.6, 0.9], [-0.1, -0.3, -0.5], [-0.8, -0.7, -0.2], [0.4, -0.1, -0.7]])
"""Colour of each label from -1 to 1: background, surface, openings, and paths or doors."""


def facade(labels, draw):
    """Draw a wall with rows of windows and a door."""
    left, top = draw(1, 4), draw(1, 5)
    right = SIDE - draw(1, 4)
    labels[top:, left:right] = 1
    for row in range(top + 1, SIDE - 5, 3):
        for column in range(left + 1, right - 2, 3):
            labels[row : row + 2, column : column + 2] = 2
    door = draw(left + 1, right - 2)
    labels[SIDE - 4 :, door : door + 2] = 3


def city_map(labels, draw):
    """Draw blocks of houses, a lake, and two streets that cross."""
    labels[:, :] = 1
    row, column = draw(2, SIDE - 7), draw(2, SIDE - 7)
    labels[row : row + 5, column : column + 5] = 2
    labels[draw(0, SIDE - 1), :] = 3
    labels[:, draw(0, SIDE - 1)] = 3


DATASETS = {"facades": facade, "maps": city_map}


def pairs(dataset, count, seed):
    """Return label maps (count, kind, row, column), one-hot, and images (count, colour, …)."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low, high):
        return int(torch.randint(low, high, (), generator=generator))

    maps = torch.zeros(count, SIDE, SIDE, dtype=torch.long)
    for labels in maps:
        DATASETS[dataset](labels, draw)
    shade = torch.linspace(0.2, -0.2, SIDE)[:, None]  # the light comes from above
    images = PALETTE[maps].permute(0, 3, 1, 2) + shade
    images += 0.05 * torch.randn(images.shape, generator=generator)
    one_hot = torch.nn.functional.one_hot(maps, KINDS).permute(0, 3, 1, 2).float()
    return one_hot, images.clamp(-1, 1)


def write_png(path, image, scale=8):
    """Write an image of (colour, row, column) from -1 to 1 to a file, `scale` times as large."""
    large = image.repeat_interleave(scale, 1).repeat_interleave(scale, 2).permute(1, 2, 0)
    data = ((large + 1) * 127.5).round().to(torch.uint8)
    lines = b"".join(b"\0" + bytes(line.flatten().tolist()) for line in data)
    height, width, _colours = data.shape
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(lines),
        b"IEND": b"",
    }
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, content in parts.items():
            length, check = len(content), zlib.crc32(kind + content)
            file.write(struct.pack(">I", length) + kind + content + struct.pack(">I", check))
