"""Cells of four operators for the handwritten digits of scikit-learn."""

from torch import nn

from nni.nas.nn.pytorch import Cell, ModelSpace

CHANNELS = 8


def convolution(size, groups=1):
    return nn.Sequential(
        nn.Conv2d(CHANNELS, CHANNELS, size, padding=size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
    )


class DigitsSpace(ModelSpace):
    """Two cells of two nodes, which share their choices: 9,216 networks for 8 x 8 pixels.

    A node adds two operators; each reads the input of the cell or an earlier node.
    """

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, CHANNELS, 3, padding=1), nn.BatchNorm2d(CHANNELS))
        self.cells = nn.ModuleList(self._cell() for _ in range(2))
        self.shrink = nn.ModuleList(nn.Conv2d(2 * CHANNELS, CHANNELS, 1) for _ in range(2))
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(4 * CHANNELS, 10)

    def _cell(self):
        operators = {
            "conv3": lambda node, index, read: convolution(3),
            "depthwise": lambda node, index, read: convolution(3, CHANNELS),
            "pool": lambda node, index, read: nn.MaxPool2d(3, 1, 1),
            "skip": lambda node, index, read: nn.Identity(),
        }
        return Cell(operators, num_nodes=2, num_ops_per_node=2, num_predecessors=1, label="cell")

    def forward(self, images):
        features = self.stem(images)
        for cell, shrink in zip(self.cells, self.shrink, strict=True):
            features = self.pool(shrink(cell([features])))
        return self.head(features.flatten(1))
