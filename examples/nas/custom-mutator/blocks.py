"""Base network with anchors, and the blocks that mutators put in their place."""

from torch import nn

from nni.nas.nn.pytorch import MutationAnchor


class Plain(nn.Sequential):
    """Convolution and activation."""

    def __init__(self, inputs, outputs, kernel):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), nn.ReLU())


class Separable(nn.Sequential):
    """Depthwise and pointwise convolution, and activation."""

    def __init__(self, inputs, outputs, kernel):
        super().__init__(
            nn.Conv2d(inputs, inputs, kernel, padding=kernel // 2, groups=inputs),
            nn.Conv2d(inputs, outputs, 1),
            nn.ReLU(),
        )


class BaseNet(nn.Module):
    """Network for images of 8 x 8 pixels, with two anchors."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.body = nn.Sequential(
            MutationAnchor(label="first", inputs=16, outputs=16),
            MutationAnchor(label="second", inputs=16, outputs=16),
        )
        self.head = nn.Sequential(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))

    def forward(self, images):
        return self.head(self.body(self.stem(images)))
