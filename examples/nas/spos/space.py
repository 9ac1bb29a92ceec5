"""A chain of blocks, each of one of four kinds, for the handwritten digits of scikit-learn."""

from torch import nn

from nni.nas.nn.pytorch import LayerChoice, ModelSpace

CHANNELS = 12


def convolution(size, groups):
    return nn.Sequential(
        nn.Conv2d(CHANNELS, CHANNELS, size, padding=size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
    )


class DigitsSpace(ModelSpace):
    """Four places with four blocks: 256 networks for images of 8 x 8 pixels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, CHANNELS, 3, padding=1), nn.BatchNorm2d(CHANNELS))
        self.places = nn.ModuleList(
            LayerChoice(
                {
                    "conv3": convolution(3, 1),
                    "conv1": convolution(1, 1),
                    "depthwise5": convolution(5, CHANNELS),
                    "pool": nn.AvgPool2d(3, 1, 1),
                },
                label=f"place{index}",
            )
            for index in range(4)
        )
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(4 * CHANNELS, 10)

    def forward(self, images):
        features = self.stem(images)
        for index, place in enumerate(self.places):
            features = place(features)
            if index % 2:
                features = self.pool(features)
        return self.head(features.flatten(1))
