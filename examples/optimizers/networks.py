"""Seven small convolutional networks, each with the block of a well-known one."""

import torch
from torch import nn

CHANNELS = 16
KINDS = ("vgg", "resnet18", "googlenet", "densenet121", "mobilenet", "dpn92", "senet18")


def convolution(inputs, outputs, kernel=3, groups=1):
    """Return a convolution that keeps the size of the image."""
    layer = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


class Block(nn.Module):
    """Block of one kind, for images of `CHANNELS` channels; `outputs` is what it returns."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.outputs = CHANNELS + {"densenet121": CHANNELS, "dpn92": CHANNELS // 2}.get(kind, 0)
        if kind == "googlenet":  # three sizes of kernel side by side
            widths = {1: CHANNELS // 4, 3: CHANNELS // 2, 5: CHANNELS // 4}
            self.paths = nn.ModuleList(convolution(CHANNELS, widths[size], size) for size in widths)
        elif kind == "mobilenet":  # each channel by itself, then all channels of each pixel
            depthwise = convolution(CHANNELS, CHANNELS, groups=CHANNELS)
            pointwise = convolution(CHANNELS, CHANNELS, kernel=1)
            self.paths = nn.ModuleList([nn.Sequential(depthwise, pointwise)])
        elif kind == "dpn92":  # a residual path and a dense one
            self.paths = nn.ModuleList([convolution(CHANNELS, CHANNELS + CHANNELS // 2)])
        else:
            self.paths = nn.ModuleList([convolution(CHANNELS, CHANNELS)])
        squeeze = (nn.AdaptiveAvgPool2d(1), nn.Conv2d(CHANNELS, CHANNELS, 1), nn.Sigmoid())
        self.gate = nn.Sequential(*squeeze) if kind == "senet18" else None

    def forward(self, images):
        new = torch.cat([path(images) for path in self.paths], dim=1)
        if self.gate is not None:
            new = new * self.gate(new)
        if self.kind in {"resnet18", "senet18"}:
            return images + new
        if self.kind == "densenet121":
            return torch.cat([images, new], dim=1)
        if self.kind == "dpn92":
            return torch.cat([images + new[:, :CHANNELS], new[:, CHANNELS:]], dim=1)
        return new


def build(kind):
    """Return a network for 8 x 8 grey images and ten classes."""
    block = Block(kind)
    return nn.Sequential(
        convolution(1, CHANNELS),
        nn.MaxPool2d(2),
        block,
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * block.outputs, 10),
    )
