"""A chain of convolutions of several sizes for the handwritten digits of scikit-learn."""

from torch import nn

from nni.nas.nn.pytorch import LayerChoice, ModelSpace

CHANNELS = 16


def convolution(size):
    return nn.Sequential(
        nn.Conv2d(CHANNELS, CHANNELS, size, padding=size // 2, bias=False),
        nn.BatchNorm2d(CHANNELS),
        nn.ReLU(),
    )


class DigitsSpace(ModelSpace):
    """Three places with four layers: 64 networks for images of 8 x 8 pixels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, CHANNELS, 3, padding=1), nn.BatchNorm2d(CHANNELS))
        self.places = nn.ModuleList(
            LayerChoice(
                {
                    "conv3": convolution(3),
                    "conv5": convolution(5),
                    "conv7": convolution(7),
                    "skip": nn.Identity(),
                },
                label=f"place{index}",
            )
            for index in range(3)
        )
        self.pool = nn.MaxPool2d(4)
        self.head = nn.Linear(4 * CHANNELS, 10)

    def forward(self, images):
        features = self.stem(images)
        for place in self.places:
            features = place(features)
        return self.head(self.pool(features).flatten(1))
